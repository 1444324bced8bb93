package inventory

import (
	"fmt"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

const displayNameKey = "inventory.open-cluster-management.io/display-name"

func TestDisplayNameFollowsTheAnnotation(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set, ns := w.ExclusiveSet("s"), w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	c := w.Cluster("c", ocmtest.InSet(set.Name))
	wire := &apitest.Wire{}
	startManager(t, wire.Tap(asManager(t, wiredHub, w)), Options{Guard: allowed})
	w.synced(c.Name)
	wire.Reset()
	for annotation, want := range map[string]string{"Zurich 1": "Zurich 1", "a\nb": `a\nb`, "": c.Name} {
		apitest.Edit(w, c, func(c *clusterv1.ManagedCluster) {
			c.Annotations = map[string]string{displayNameKey: annotation}
		})
		w.Eventually("the name arrives", func() string {
			if got := w.Profile(ns, c.Name).Spec.DisplayName; got != want {
				return fmt.Sprintf("the profile is called %q, want %q", got, want)
			}
			return ""
		})
	}
	// A new name is a new generation of the profile, which its conditions repeat.
	if writes := wire.Sent("clusterprofiles", "clusterprofiles/status"); len(writes) > 2*3 {
		t.Errorf("three names took %q", writes)
	}
}
