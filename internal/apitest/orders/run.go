package orders

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	mostStates = flag.Int("orders.states", 5_000, "the most states to visit in each scenario")
	budget     = flag.Int("orders.changes", 0, "how many changes others make; 0: as many as the scenario says")
	onlyThose  = flag.String("orders.only", "", "regular expression of the scenarios to search, by their names")
	firstOnly  = flag.Bool("orders.first", false, "end with the first scenario that finds anything")
)

// known are violations of the manager as it is. They are counted, and the search goes on.
var known = []string{MixedMade}

// SearchAll searches scenarios, and prints what it finds with the shortest trace. It fails unless
// that is known.
func SearchAll(t *testing.T, scenarios []Scenario, part func() Part) {
	most := *mostStates
	if raced {
		most = min(most, 1000)
	}
	only := regexp.MustCompile(*onlyThose)
	for _, scenario := range scenarios {
		if !only.MatchString(scenario.Name) {
			continue
		}
		if *budget > 0 {
			scenario.Budget = *budget
		}
		// A few changes without crashes are explored to the end, and everything as far as it goes.
		few := scenario
		few.Name, few.Budget, few.Crashes, few.Losses = few.Name+", undisturbed", min(2, few.Budget), 0, 0
		for _, each := range []Scenario{few, scenario} {
			report := Search(each, part(), most, known...)
			t.Log(report)
			for what, count := range report.Found {
				t.Logf("%s: %d times, first after\n  %s", what, count, strings.Join(report.Trace[what], "\n  "))
				if !slices.Contains(known, what) {
					t.Fail()
				}
			}
			if t.Failed() && *firstOnly {
				return
			}
		}
	}
}
