package rule

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// Nothing is read live before it is needed, and nothing is withdrawn before it was.
func TestSettleReadsLiveWhatMayBeHidden(t *testing.T) {
	now := time.Unix(1000, 0)
	// Two slices, the first of which has names on both sides of c.
	around := func(names ...string) []string {
		return slices.Concat([]string{"a"}, names, ocmtest.Numbered(1, 150))
	}
	read := func(name string, clusters ...string) *Placement {
		p := NewPlacement(ocmtest.Publishing(name, len(clusters)), ocmtest.Slices(name, clusters...))
		return &p
	}
	publishing := func(clusters ...string) func(*Observation) {
		return func(o *Observation) { o.Placements = []ObservedPlacement{read("p", clusters...).Observed("c")} }
	}
	installs := func(clusters ...string) *Installs {
		observed := read("i", clusters...).Observed("c")
		return &Installs{Keys: []types.NamespacedName{{Namespace: "ns", Name: "i"}}, Placements: []*ObservedPlacement{&observed}}
	}
	withoutAddon := func(o *Observation) { o.Addon = nil }
	for name, test := range map[string]struct {
		change []func(*Observation)
		ago    time.Duration // since when it is absent
		wait   time.Duration
		memory Installs
		live   Live

		slices, installs bool // what is read
		want             Answer
		waits            time.Duration
	}{
		"an absence that has not lasted": {
			change: []func(*Observation){publishing(around()...)}, wait: time.Second, waits: time.Second, want: No,
		},
		"several slices":            {change: []func(*Observation){publishing(around()...)}, ago: time.Second, slices: true, want: No},
		"one slice":                 {change: []func(*Observation){publishing("a", "d")}, ago: time.Second, want: No},
		"one slice, after all time": {change: []func(*Observation){publishing("a", "d")}, ago: LongestMove, slices: true, want: No},
		"slices that lack it on the hub, too": {
			change: []func(*Observation){publishing(around()...)}, ago: time.Second,
			live: Live{Slices: []*Placement{read("p", around()...)}}, want: No,
		},
		"slices that have it on the hub": {
			change: []func(*Observation){publishing(around()...)}, ago: LongestMove,
			live: Live{Slices: []*Placement{read("p", around("c")...)}}, want: Unknown,
		},
		"a Placement that is gone from the hub": {
			change: []func(*Observation){publishing(around()...)}, ago: time.Second, live: Live{Slices: []*Placement{nil}},
			want: Unknown,
		},
		"an addon that several slices hide": {
			change: []func(*Observation){withoutAddon}, memory: *installs(around()...), installs: true, want: No,
		},
		"an addon that one slice does not hide": {
			change: []func(*Observation){withoutAddon}, memory: *installs("a", "d"), want: No,
		},
		"an addon that the hub is about to create again": {
			change: []func(*Observation){withoutAddon}, memory: *installs(around()...),
			live: Live{Installs: installs(around("c")...)}, want: Unknown,
		},
		"an addon that was not created again": {
			change: []func(*Observation){withoutAddon}, ago: LongestMove, memory: *installs(around("c")...), want: No,
		},
		"an addon of a cluster that is not chosen either": {
			change: []func(*Observation){withoutAddon, publishing(around()...)}, ago: time.Second,
			memory: *installs(around("c")...), slices: true, want: No,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := situation(test.change...)
			o.Name = "c"
			m := Memory{
				Now: now, Absent: now.Add(-test.ago), Uninstalled: now.Add(-test.ago), Settling: test.wait, Installs: &test.memory,
			}
			got := Settle(o, Pair(o), m, test.live, LongestMove)
			if got.ReadInstalls != test.installs || (got.ReadSlices != nil) != test.slices ||
				got.Result.Answer != test.want || got.Wait != test.waits {
				t.Errorf("%+v", got)
			}
		})
	}
}
