package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// A property is created, toggles within the profile's budget, stops being a label value and
// is deleted, also while no manager runs. Another client's label always stays.
func TestLabelsFollowProperties(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set, ns := w.ExclusiveSet("s"), w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	c := w.Cluster("c", ocmtest.InSet(set.Name), ocmtest.Claim("region.example.com", "eu"))
	wire, shown := &apitest.Wire{}, limits
	shown.PropertyLabels = []string{"region.example.com", "tier"}
	cfg := wire.Tap(asManager(t, wiredHub, w))
	opts := Options{Guard: allowed, WriteEvery: time.Second}
	start := func() func() { return startLimited(t, cfg, shown, opts) }
	stop := start()
	shows := func(region, tier string) {
		t.Helper()
		w.Eventually("the labels arrive", func() string {
			profile := w.Profile(ns, c.Name)
			if profile == nil {
				return "no profile"
			}
			got := []string{profile.Labels["region.example.com"], profile.Labels["tier"]}
			return cmp.Diff([]string{region, tier}, got)
		})
	}
	says := func(claims ...clusterv1.ManagedClusterClaim) {
		t.Helper()
		apitest.EditStatus(w, c, func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = claims })
	}
	shows("eu", "")
	apitest.Edit(w, w.Profile(ns, c.Name), func(p *inventoryv1alpha1.ClusterProfile) { p.Labels["tier"] = "theirs" })
	says(ocmtest.Claim("region.example.com", "us"), ocmtest.Claim("tier", "ours"))
	shows("us", "theirs")

	wire.Reset()
	began := time.Now()
	for n := range 60 {
		says(ocmtest.Claim("region.example.com", fmt.Sprint("toggle-", n)))
	}
	shows("toggle-59", "theirs")
	most := kube.WritesAtOnce + int(time.Since(began)/time.Second) + 2
	if writes := wire.Writes("clusterprofiles", "clusterprofiles/status"); len(writes) > most {
		t.Errorf("60 values took %d writes, want at most %d", len(writes), most)
	}

	says(ocmtest.Claim("region.example.com", "no label value"))
	shows("", "theirs")
	w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "False", "InvalidProperties",
		`Left out: the label "region.example.com", because the property's value is not a label value.`)
	says(ocmtest.Claim("region.example.com", "eu"))
	shows("eu", "theirs")
	stop()
	says()
	start()
	shows("", "theirs")
}
