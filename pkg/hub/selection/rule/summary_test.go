package rule

import (
	"testing"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestSummaryOf(t *testing.T) {
	first, second := ocmtest.Slice("p-1", "p", "a", "b"), ocmtest.Slice("p-2", "p", "c", "")
	first.ResourceVersion, second.ResourceVersion = "9", "10"
	both := []clusterv1beta1.PlacementDecision{*first, *second}
	got := SummaryOf(both)
	if got.decisions != 3 || got.Slices != 2 || got.layout == nil {
		t.Errorf("summary %+v", got)
	}
	if !got.IsOf([]clusterv1beta1.PlacementDecision{*second, *first}) {
		t.Error("the order of slices matters")
	}
	later := *second.DeepCopy()
	later.ResourceVersion = "11"
	for what, others := range map[string][]clusterv1beta1.PlacementDecision{
		"a slice was written": {*first, later}, "a slice is gone": {*first}, "there is none": nil,
	} {
		if got.IsOf(others) {
			t.Errorf("%s, but the summary has not changed", what)
		}
	}
	if (Summary{}).IsOf(nil) {
		t.Error("what was never counted is known")
	}
}
