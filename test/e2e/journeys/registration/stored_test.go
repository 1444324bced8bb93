package registration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/stored"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// The manager reads addons as the hub stores them, and converts them itself. The result
// must equal the hub's webhook's, or the manager would write back something else.
func TestTheManagerConvertsAddonsAsTheHubDoes(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, byCertificate, byToken)
	cfg, err := journeys.Fleet.Cluster("hub")
	apitest.Must(t, err)
	wire := &apitest.Wire{}
	cfg = wire.Tap(cfg)
	informers, err := stored.Informers(t.Context(), cfg, journeys.Hub(t))
	apitest.Must(t, err)
	cached, err := cache.New(cfg, cache.Options{Scheme: journeys.Hub(t).Scheme(), NewInformer: informers})
	apitest.Must(t, err)
	apitest.RunCache(t, cached, &addonv1beta1.ManagedClusterAddOn{})
	for _, call := range wire.Calls() {
		if call.Resource == "managedclusteraddons" && !strings.Contains(call.Path, "/v1alpha1/") {
			t.Errorf("%s: not the version in which Open Cluster Management 1.2 stores addons", call)
		}
	}
	for _, cluster := range []string{byCertificate, byToken} {
		apitest.Eventually(t, journeys.Soon, "the addon of "+cluster+" is read as the hub converts it", func() string {
			live, read := journeys.AddonOf(cluster), journeys.AddonOf(cluster)
			apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(live), live))
			apitest.Must(t, cached.Get(t.Context(), client.ObjectKeyFromObject(read), read))
			return cmp.Diff(live, read, cmpopts.IgnoreTypes(metav1.TypeMeta{}))
		})
	}
}
