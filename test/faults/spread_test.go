package faults

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Which slice has a reference is not compared; whether there is one, and whether there are two, is.
func TestStatesAreEqualHoweverReferencesAreSpread(t *testing.T) {
	slice := func(number int, clusters ...string) (id, content string) {
		decisions := []any{}
		for _, cluster := range clusters {
			decisions = append(decisions, map[string]any{"clusterProfileRef": map[string]any{"name": cluster}})
		}
		metadata := map[string]any{"name": fmt.Sprintf("view-profiles-%d", number)}
		return fmt.Sprintf("%s team-a/view-profiles-%d", references, number),
			normal(map[string]any{"metadata": metadata, "decisions": decisions})
	}
	state := func(first, second []string) map[string]string {
		state := map[string]string{"secrets team-a/foreign": "theirs"}
		for number, clusters := range [][]string{first, second} {
			id, content := slice(number, clusters...)
			state[id] = content
		}
		joinSlices(state)
		return state
	}
	want := state([]string{"c1", "c2"}, []string{"c3"})
	if diff := cmp.Diff(want, state([]string{"c3", "c1"}, []string{"c2"})); diff != "" {
		t.Error(diff)
	}
	for name, other := range map[string]map[string]string{
		"a missing reference": state([]string{"c1", "c2"}, nil),
		"two references":      state([]string{"c1", "c2"}, []string{"c2", "c3"}),
	} {
		if cmp.Equal(want, other) {
			t.Errorf("%s is not seen", name)
		}
	}
}
