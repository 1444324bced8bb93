package faults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Upstream's syncer copies a token wherever the cluster has a profile; an account cannot say
// where to.
func TestTokensOfUpstreamMayBeWithTheirProfiles(t *testing.T) {
	want := map[string]map[string][]string{
		"bind":           {"c1": {teamA}},
		"edit":           {},
		"rotate":         {"c1": {teamA, teamB}},
		"unbind":         {"c1": {teamA, teamB}, "c2": {teamA, teamB}},
		"register-again": {"c1": {teamA}, "c2": {teamA}},
		"move":           {"c1": {teamA}, "c2": {teamA, teamB}},
	}
	got := map[string]map[string][]string{}
	for _, s := range upstreamStories() {
		got[s.name] = s.targets
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
