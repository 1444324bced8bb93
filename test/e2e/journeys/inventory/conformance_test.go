package inventory

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/conformance"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// The hub begins to serve ClusterProfiles in v1alpha2, too, while everything runs. The
// profiles stay, and conform to SIG-Multicluster's rules.
func TestProfilesConform(t *testing.T) {
	journeys.Installed(t)
	clusters := []string{journeys.Cluster1, journeys.Cluster2}
	journeys.Enabled(t, clusters...)
	ns := journeys.Sandbox(t, "conform", clusters...)
	before := map[string]types.UID{}
	for _, cluster := range clusters {
		before[cluster] = journeys.HasProfile(t, ns, cluster).UID
	}

	newer, err := apitest.ClusterProfileInTwoVersions()()
	apitest.Must(t, err)
	apitest.Within(t, journeys.Soon, "the hub's definition is the newer one", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(newer[0]), crd); err != nil {
			return err
		}
		crd.Spec.Versions = newer[0].Spec.Versions
		return journeys.Hub(t).Update(ctx, crd)
	})

	cfg, err := journeys.Fleet.Cluster("hub")
	apitest.Must(t, err)
	report := &strings.Builder{}
	apitest.Within(t, journeys.Soon, "the profiles conform", func(ctx context.Context) error {
		hub, err := conformance.Observe(ctx, cfg, ns)
		if err != nil {
			return err
		}
		checked := conformance.Check(hub, "open-cluster-management")
		report.Reset()
		checked.Print(report)
		if checked.Profiles != len(clusters) || strings.Contains(report.String(), "FAIL") {
			return fmt.Errorf("%s", report)
		}
		return nil
	})
	t.Logf("the report of make conformance:\n%s", report)
	for _, cluster := range clusters {
		if now := journeys.HasProfile(t, ns, cluster); now.UID != before[cluster] {
			t.Errorf("the profile of %s was recreated", cluster)
		}
		journeys.Sets(t, cluster, "version.example", "two")
		journeys.Shows(t, ns, cluster, "version.example", "two")
	}
}
