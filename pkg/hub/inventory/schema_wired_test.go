package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// OCM's operator replaces SIG-Multicluster's CRD by its own when its gate is switched on, and
// an administrator may do the opposite. Lists are maps in one and atomic in the other. The
// manager runs on, and what others have in these lists stays.
func TestTheProfileAPIIsSwappedWhileRunning(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile())
	w := newWorld(t, server.Config(t))
	set, ns, wire := w.ExclusiveSet("set"), w.Namespace("team", nil), &apitest.Wire{}
	w.Bind(ns, set.Name)
	c := w.Cluster("c", ocmtest.InSet(set.Name), ocmtest.Claim("x", "0"))
	startManager(t, wire.Tap(asManager(t, server, w)), Options{Guard: allowed})
	w.whole(ns, c.Name)
	uid := w.Profile(ns, c.Name).UID
	theirs := inventoryv1alpha1.AccessProvider{Name: "theirs"}
	theirs.Cluster.Server = "https://theirs"
	apitest.EditStatus(w, w.Profile(ns, c.Name), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.AccessProviders = append(p.Status.AccessProviders, theirs)
		p.Status.Conditions = append(p.Status.Conditions, ocmtest.Condition("Theirs", "True", "R", ""))
	})
	wire.Reset()
	for n, form := range []apitest.CRDs{
		apitest.AtomicClusterProfile(), apitest.ClusterProfile(),
		apitest.ClusterProfileInTwoVersions(), apitest.AtomicClusterProfile(),
	} {
		server.Install(t, form)
		value := string(rune('a' + n))
		apitest.EditStatus(w, c, func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("x", value)}
		})
		w.Eventually("the claim arrives", func() string {
			return cmp.Diff(value, w.Profile(ns, c.Name).Status.Properties[0].Value)
		})
		got := w.Profile(ns, c.Name)
		if got.UID != uid {
			t.Fatal("the profile was recreated")
		}
		if len(got.Status.Conditions) != 3 || len(got.Status.AccessProviders) != 1 ||
			got.Status.AccessProviders[0].Name != "theirs" {
			t.Errorf("form %d: conditions %+v, access providers %+v", n, got.Status.Conditions, got.Status.AccessProviders)
		}
	}
	w.synced(c.Name)
	want := []string{patchStatus, patchStatus, patchStatus, patchStatus}
	if diff := cmp.Diff(want, wire.Sent("clusterprofiles", "clusterprofiles/status")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
