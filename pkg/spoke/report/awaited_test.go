package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

func TestClaimsAreAwaitedUntilTheyAreLate(t *testing.T) {
	begin := time.Unix(1000, 0)
	after := begin.Add
	for name, tc := range map[string]struct {
		before     awaited
		properties []property.Property
		claims     []claim
		counted    []claim
		wait       time.Duration
		after      awaited
	}{
		"nothing is missing: nothing to wait for": {
			properties: props("a"), claims: ours("a"), counted: ours("a"), after: awaited{},
		},
		"a new property: its claim counts and is awaited": {
			properties: props("a"), counted: ours("a"), wait: 5 * time.Second, after: awaited{"a": begin},
		},
		"the claim came: no longer awaited": {
			before: awaited{"a": after(-time.Second)}, properties: props("a"),
			claims: ours("a"), counted: ours("a"), after: awaited{},
		},
		"one is late and does not count, the next is waited for": {
			before:     awaited{"late": after(-5 * time.Second), "soon": after(-4 * time.Second)},
			properties: props("late", "soon", "new"), counted: ours("new", "soon"), wait: time.Second,
			after: awaited{"late": after(-5 * time.Second), "soon": after(-4 * time.Second), "new": begin},
		},
		"a claim of somebody else is an answer": {
			properties: props("a"), claims: theirs("a"), counted: theirs("a"), after: awaited{},
		},
		"a property that is not to be published is not waited for": {
			before:     awaited{"kept": after(-time.Second)},
			properties: []property.Property{{Name: "kept", Value: "v", SpokeOnly: true}, {Name: "empty"}}, after: awaited{},
		},
		"the property went: no longer awaited": {
			before: awaited{"a": after(-time.Second)}, after: awaited{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory := awaited{}
			if tc.before != nil {
				memory = tc.before
			}
			seen := observed{properties: tc.properties, claims: tc.claims}
			if wait := memory.count(&seen, begin); wait != tc.wait {
				t.Errorf("waits %s, want %s", wait, tc.wait)
			}
			slices.SortFunc(seen.claims, func(a, b claim) int { return strings.Compare(a.name, b.name) })
			if diff := cmp.Diff(tc.counted, seen.claims, cmp.AllowUnexported(claim{})); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.after, memory); diff != "" {
				t.Errorf("awaited (-want +got):\n%s", diff)
			}
		})
	}
}
