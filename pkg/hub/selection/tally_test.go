package selection

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func TestTallyOf(t *testing.T) {
	first, second := slice("p-1", "p", "a", "b"), slice("p-2", "p", "c", "")
	first.ResourceVersion, second.ResourceVersion = "9", "10"
	both := []clusterv1beta1.PlacementDecision{*first, *second}
	got := tallyOf(both)
	if got.decisions != 3 || got.slices != 2 || got.layout == nil {
		t.Errorf("tally %+v", got)
	}
	if !got.isOf([]clusterv1beta1.PlacementDecision{*second, *first}) {
		t.Error("the order of slices matters")
	}
	later := *second.DeepCopy()
	later.ResourceVersion = "11"
	for what, others := range map[string][]clusterv1beta1.PlacementDecision{
		"a slice was written": {*first, later}, "a slice is gone": {*first}, "there is none": nil,
	} {
		if got.isOf(others) {
			t.Errorf("%s, but the tally has not changed", what)
		}
	}
	if (tally{}).isOf(nil) {
		t.Error("what was never counted is known")
	}
}

func TestSlicesAreCountedOnceUntilTheyChange(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	s := newSettling()
	one := []clusterv1beta1.PlacementDecision{*slice("p-1", "p", "a")}
	first := s.tally(key, one)
	if again := s.tally(key, one); again.layout != first.layout {
		t.Error("slices that did not change were counted once more")
	}
	one[0].Status.Decisions = nil
	one[0].ResourceVersion = "another"
	if changed := s.tally(key, one); changed.decisions != 0 {
		t.Errorf("after a change: %+v", changed)
	}
	s.vanished(key)
	if len(s.tallies) > 0 {
		t.Errorf("remembered: %v", s.tallies)
	}
}
