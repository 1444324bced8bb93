package orders

import (
	"flag"
	"strings"
	"testing"
)

var limit = flag.Int("orders.states", 20_000, "the most states to visit in each scenario")

// TestProfiles explores the rule and the profiles.
func TestProfiles(t *testing.T) {
	for _, scenario := range ProfileScenarios() {
		report := Search(scenario, nil, *limit, MixedMade, MixedRemoved)
		t.Log(report)
		for what, count := range report.Found {
			t.Logf("%s: %d times, first after\n  %s", what, count, strings.Join(report.Trace[what], "\n  "))
			if what != MixedMade && what != MixedRemoved {
				t.Fail()
			}
		}
	}
}
