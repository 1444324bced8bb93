package faults

import (
	"slices"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

func TestTimestampsAreWrongInAllStoriesButSomeWithoutAClock(t *testing.T) {
	for name, want := range map[string]int{"rotate": len(ofClocks) + len(ofTimestamps), "edit": len(ofTimestamps)} {
		got := 0
		for _, p := range plansOf(story{name: name}, reference{}) {
			if slices.Contains(slices.Concat(ofClocks, ofTimestamps), p.fault.Kind) {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d plans, want %d", name, got, want)
		}
	}
}

func TestOnlyTheProgramReadsWrongTimes(t *testing.T) {
	l := &lane{program: "this"}
	for kind, want := range map[proxy.Kind]version{
		proxy.None:       {program: "this"},
		timestampsAhead:  {program: "this", shift: clockError},
		timestampsBehind: {program: "this", shift: -clockError},
	} {
		if first, second := l.versionsOf(t, kind); first.shift != want.shift || first.program != want.program ||
			second.shift != want.shift {
			t.Errorf("%s: %v and %v", kind, first, second)
		}
	}
}
