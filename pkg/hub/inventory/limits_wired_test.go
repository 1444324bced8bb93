package inventory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// A klusterlet sends all that its API server accepts: hundreds of claims, and a version of a
// megabyte.
func TestSpokesInputIsBounded(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	wire := &apitest.Wire{}
	set, ns, other := w.ExclusiveSet("s"), w.Namespace("team", nil), w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	w.Bind(other, set.Name)
	var claims []clusterv1.ManagedClusterClaim
	for i := range 800 {
		claims = append(claims, ocmtest.Claim(fmt.Sprintf("p%03d.example", i), strings.Repeat("v", 500)))
	}
	c := w.Cluster("c", ocmtest.InSet(set.Name), claims...)
	apitest.EditStatus(w, c,
		func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = strings.Repeat("1", 1<<20) })

	startManager(t, wire.Tap(asManager(t, wiredHub, w)), Options{Guard: allowed})
	const kept = (64 << 10) / (12 + 500)
	w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "False", "InvalidProperties", fmt.Sprintf(
		`Left out: %d of 800 claims, from "p%03d.example" on: a profile has at most 1000, with 65536 bytes in all, `+
			"the Kubernetes version has 1048576 bytes, more than 64.",
		800-kept, kept))
	for _, namespace := range []string{ns, other} {
		w.whole(namespace, c.Name)
		profile := w.Profile(namespace, c.Name)
		if got := len(profile.Status.Properties); got != kept || profile.Status.Version.Kubernetes != "" {
			t.Errorf("%d properties, want %d; version %.70q", got, kept, profile.Status.Version.Kubernetes)
		}
		profile.ManagedFields = nil
		size, err := json.Marshal(profile)
		apitest.Must(t, err)
		if len(size) > 80<<10 {
			t.Errorf("the profile has %d bytes", len(size))
		}
		t.Logf("the profile has %d bytes", len(size))
	}
	sent := wire.Sent("clusterprofiles", "clusterprofiles/status")
	if len(sent) != 4 {
		t.Errorf("two profiles are made with %v", sent)
	}

	// One more claim displaces only as many as it needs room.
	before := w.Profile(ns, c.Name)
	wire.Reset()
	apitest.EditStatus(w, c, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = append(c.Status.ClusterClaims, ocmtest.Claim("a.example", strings.Repeat("v", 500)))
	})
	w.Eventually("the claim arrives", func() string {
		want := append([]string{"a.example"}, names(before)[:kept-1]...)
		return cmp.Diff(want, names(w.Profile(ns, c.Name)))
	})

	// When the spoke sends less, nothing is left out.
	apitest.EditStatus(w, c, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims, c.Status.Version.Kubernetes = claims[:2], "v1.35.4"
	})
	w.synced(c.Name)
	if got := w.Profile(ns, c.Name); len(got.Status.Properties) != 2 || got.Status.Version.Kubernetes != "v1.35.4" {
		t.Errorf("profile %+v", got.Status)
	}
}

func names(profile *inventoryv1alpha1.ClusterProfile) []string {
	var names []string
	for _, property := range profile.Status.Properties {
		names = append(names, property.Name)
	}
	return names
}

// The list of the copied labels is stripped while no manager runs.
func TestCopiedLabelsAreRecognizedAfterARestartWithoutTheirList(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set, ns := w.ExclusiveSet("s"), w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	labels := ocmtest.InSet(set.Name)
	labels["env"] = "prod"
	c := w.Cluster("c", labels)
	cfg := asManager(t, wiredHub, w)
	opts := Options{Guard: allowed, LabelAllow: []string{"env", "zone"}}
	stop := startManager(t, cfg, opts)
	shows := func(env, zone, list string) {
		t.Helper()
		w.Eventually("the labels arrive", func() string {
			profile := w.Profile(ns, c.Name)
			if profile == nil {
				return "no profile"
			}
			got := []string{
				profile.Labels["env"], profile.Labels["zone"],
				profile.Annotations["inventory.open-cluster-management.io/copied-labels"]}
			return cmp.Diff([]string{env, zone, list}, got)
		})
	}
	shows("prod", "", "env")
	stop()
	apitest.Edit(w, w.Profile(ns, c.Name), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Annotations, p.Labels["zone"] = nil, "theirs"
	})
	apitest.Edit(w, c, func(c *clusterv1.ManagedCluster) { c.Labels["env"], c.Labels["zone"] = "test", "ours" })
	startManager(t, cfg, opts)
	shows("test", "theirs", "env")
}
