package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// since is the state of awaited.
type since map[string]time.Time

func TestClaimsAreAwaitedUntilTheyAreLate(t *testing.T) {
	begin := time.Unix(1000, 0)
	after := begin.Add
	for name, tc := range map[string]struct {
		before     since
		properties []property.Property
		claims     []claim
		counted    []claim
		wait       time.Duration
		after      since
	}{
		"nothing is missing: nothing to wait for": {
			properties: props("a"), claims: ours("a"), counted: ours("a"), after: since{},
		},
		"a new property: its claim counts and is awaited": {
			properties: props("a"), counted: ours("a"), wait: 5 * time.Second, after: since{"a": begin},
		},
		"the claim was created: no longer awaited": {
			before: since{"a": after(-time.Second)}, properties: props("a"),
			claims: ours("a"), counted: ours("a"), after: since{},
		},
		"one is late and does not count, the next is waited for": {
			before:     since{"late": after(-5 * time.Second), "soon": after(-4 * time.Second)},
			properties: props("late", "soon", "new"), counted: ours("new", "soon"), wait: time.Second,
			after: since{"late": after(-5 * time.Second), "soon": after(-4 * time.Second), "new": begin},
		},
		"another client's claim is an answer": {
			properties: props("a"), claims: theirs("a"), counted: theirs("a"), after: since{},
		},
		"a property that is not to be published is not waited for": {
			before:     since{"kept": after(-time.Second)},
			properties: []property.Property{{Name: "kept", Value: "v", SpokeOnly: true}, {Name: "empty"}}, after: since{},
		},
		"the property was deleted: no longer awaited": {
			before: since{"a": after(-time.Second)}, after: since{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory := awaited{}
			for name, begun := range tc.before {
				memory.Since(name, begun)
			}
			seen := observed{properties: tc.properties, claims: tc.claims}
			if wait := memory.count(&seen, begin); wait != tc.wait {
				t.Errorf("waits %s, want %s", wait, tc.wait)
			}
			slices.SortFunc(seen.claims, func(a, b claim) int { return strings.Compare(a.name, b.name) })
			if diff := cmp.Diff(tc.counted, seen.claims, cmp.AllowUnexported(claim{})); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			left := since{}
			for _, name := range memory.Keys() {
				left[name], _ = memory.Begun(name)
			}
			if diff := cmp.Diff(tc.after, left); diff != "" {
				t.Errorf("awaited (-want +got):\n%s", diff)
			}
		})
	}
}
