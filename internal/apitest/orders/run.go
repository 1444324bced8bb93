package orders

import (
	"flag"
	"regexp"
	"strings"
	"testing"
)

var (
	mostStates = flag.Int("orders.states", 5_000, "the most states to visit in each scenario")
	budget     = flag.Int("orders.changes", 0, "how many changes others make; 0: as many as the scenario says")
	onlyThose  = flag.String("orders.only", "", "regular expression of the scenarios to search, by their names")
	negate     = flag.String("orders.negate", "", "numbers of clauses to negate, one at a time (see hack/mutants)")
	results    = flag.String("orders.results", "", "the file to which the results of negated clauses are appended")
)

// SearchAll searches scenarios, and fails with the shortest trace to each violation.
func SearchAll(t *testing.T, scenarios []Scenario, part func() Part) {
	most := *mostStates
	if raced {
		most = min(most, 1000)
	}
	searches := searchesOf(scenarios)
	if *negate != "" {
		negateAll(t, searches, part, most, *negate, *results)
		return
	}
	for _, each := range searches {
		report := Search(each, part(), most)
		t.Log(report)
		if report.Violated != "" {
			t.Errorf("%s, after\n  %s", report.Violated, strings.Join(report.Trace, "\n  "))
		}
	}
}

// searchesOf returns the searches of some scenarios. A few changes without crashes are explored to the end, and
// everything else up to the limit of states.
func searchesOf(scenarios []Scenario) (searches []Scenario) {
	only := regexp.MustCompile(*onlyThose)
	for _, scenario := range scenarios {
		if !only.MatchString(scenario.Name) {
			continue
		}
		if *budget > 0 {
			scenario.Budget = *budget
		}
		if scenario.Budget > 2 || scenario.Crashes > 0 || scenario.Losses > 0 {
			few := scenario
			few.Name, few.Budget, few.Crashes, few.Losses = few.Name+", undisturbed", min(2, few.Budget), 0, 0
			searches = append(searches, few)
		}
		searches = append(searches, scenario)
	}
	return searches
}
