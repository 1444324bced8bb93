package rule

import (
	"fmt"
	"slices"
	"testing"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestMayMove(t *testing.T) {
	grouped := func(decisions []clusterv1beta1.PlacementDecision) []clusterv1beta1.PlacementDecision {
		for i := range decisions {
			decisions[i].Labels["cluster.open-cluster-management.io/decision-group-index"] = fmt.Sprint(i)
		}
		return decisions
	}
	named := func(name string, clusters []string) []clusterv1beta1.PlacementDecision {
		return []clusterv1beta1.PlacementDecision{*ocmtest.Slice(name, "p", clusters...)}
	}
	for name, test := range map[string]struct {
		decisions []clusterv1beta1.PlacementDecision
		moving    []string
		removed   []string
	}{
		"no slices":   {removed: []string{"c0001"}},
		"empty slice": {decisions: ocmtest.Slices("p"), removed: []string{"c0001"}},
		"one slice, not full": {
			decisions: ocmtest.Slices("p", append(ocmtest.Numbered(2, 50), ocmtest.Numbered(52, 60)...)...),
			removed:   []string{"c0001", "c0051", "c0061"},
		},
		"one full slice: the last cluster may be pushed into a second one": {
			decisions: ocmtest.Slices("p", ocmtest.Numbered(2, 101)...),
			moving:    []string{"c0102"},
			removed:   []string{"c0001"},
		},
		"a join in front: the first slice is written, the second is not": {
			decisions: slices.Concat(named("p-decision-1", append([]string{"a"}, ocmtest.Numbered(1, 99)...)),
				named("p-decision-2", ocmtest.Numbered(101, 150))),
			moving:  []string{"c0100"},
			removed: []string{"b", "c0050x", "c0151", "c0120x"},
		},
		"many joins in front: a cluster moves by two slices": {
			decisions: slices.Concat(named("p-decision-1", ocmtest.Numbered(1, 100)), named("p-decision-2", ocmtest.Numbered(101, 200)),
				named("p-decision-3", ocmtest.Numbered(401, 450))),
			moving:  []string{"c0201", "c0300", "c0400"},
			removed: []string{"c0050x", "c0150x", "c0425x", "c0451"},
		},
		"ten slices and more are in the order of their numbers": {
			decisions: ocmtest.Slices("p", ocmtest.Numbered(1, 1250)...),
			moving:    []string{"c0900x", "c1000x", "c1100x"},
			removed:   []string{"c0950x", "c1050x", "c1251"},
		},
		"5000 clusters": {
			decisions: ocmtest.Slices("p", ocmtest.Numbered(1, 5000)...),
			moving:    []string{"c4900x", "c5001"},
			removed:   []string{"c4950x", "b"},
		},
		"decision groups": {
			decisions: grouped(ocmtest.Slices("p", ocmtest.Numbered(1, 150)...)),
			moving:    []string{"b", "c0050x", "c0151"},
		},
		"a named decision group": {
			decisions: func() []clusterv1beta1.PlacementDecision {
				one := ocmtest.Slices("p", ocmtest.Numbered(1, 5)...)
				one[0].Labels["cluster.open-cluster-management.io/decision-group-name"] = "canary"
				return one
			}(),
			moving: []string{"c0003x"},
		},
		"a slice that is not full before another: OCM is about to write": {
			decisions: slices.Concat(named("p-decision-1", ocmtest.Numbered(1, 5)), named("p-decision-2", ocmtest.Numbered(101, 150))),
			moving:    []string{"c0003x", "c0050", "c0120x"},
		},
		"slices that overlap": {
			decisions: slices.Concat(named("p-decision-1", ocmtest.Numbered(1, 100)), named("p-decision-2", ocmtest.Numbered(100, 150))),
			moving:    []string{"c0050x", "c0120x"},
		},
		"a full slice and an empty one": {
			decisions: slices.Concat(named("p-decision-1", ocmtest.Numbered(1, 100)), named("p-decision-2", nil)),
			moving:    []string{"c0050x"},
		},
		"another client's slice, not sorted":          {decisions: named("mine", []string{"b", "a"}), moving: []string{"c"}},
		"another client's slice, with an entry twice": {decisions: named("mine", []string{"a", "a"}), moving: []string{"c"}},
		"another client's slice, too long":            {decisions: named("mine", ocmtest.Numbered(1, 101)), moving: []string{"c0050x"}},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Reverse(test.decisions) // caches have no order
			l := layoutOf(test.decisions)
			for _, cluster := range test.moving {
				if !l.mayMove(cluster) {
					t.Errorf("%s is taken for removed", cluster)
				}
			}
			for _, cluster := range test.removed {
				if l.mayMove(cluster) {
					t.Errorf("%s is taken for moving", cluster)
				}
			}
			if len(test.moving) > 0 && !l.mayHide() {
				t.Error("the slices are said to hide nothing")
			}
		})
	}
}

// TestNoMixtureOfTwoStatesRemovesAClusterChosenInBoth plays every change of small sets of clusters, with
// every subset of OCM's writes done: a cluster that is chosen before and after is in a slice, or may
// move, unless the slices do not tell one state from another.
func TestNoMixtureOfTwoStatesRemovesAClusterChosenInBoth(t *testing.T) {
	const size = 3 // OCM's slices have a hundred; the rule is the same
	all := []string{"a", "b", "c", "d", "e", "f", "g"}
	cut := func(set int) [][]string {
		var names []string
		for i, name := range all {
			if set&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		return slices.Collect(slices.Chunk(names, size))
	}
	pad := func(names []string) []string { // to a hundred, without a change of order
		if len(names) < size {
			return names
		}
		padded := slices.Clone(names)
		for i := range fullSlice - size {
			padded = append(padded, fmt.Sprintf("%s-%03d", names[0], i))
		}
		return slices.Sorted(slices.Values(padded))
	}
	checked := 0
	for before := range 1 << len(all) {
		for after := range 1 << len(all) {
			was, is := cut(before), cut(after)
			for done := range 1 << max(len(was), len(is)) {
				var decisions []clusterv1beta1.PlacementDecision
				present := map[string]bool{}
				for n := range max(len(was), len(is)) {
					from := was
					if done&(1<<n) != 0 {
						from = is
					}
					if n < len(from) {
						decisions = append(decisions, *ocmtest.Slice(fmt.Sprintf("p-decision-%d", n+1), "p", pad(from[n])...))
						for _, name := range from[n] {
							present[name] = true
						}
					}
				}
				l := layoutOf(decisions)
				for i, name := range all {
					inBoth := before&after&(1<<i) != 0
					if inBoth && !present[name] && !l.mayMove(name) {
						t.Fatalf("%s is chosen in %v and in %v, but taken for removed with writes %b", name, was, is, done)
					}
				}
				checked++
			}
		}
	}
	t.Logf("checked %d mixtures", checked)
}
