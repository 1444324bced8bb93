package orders

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/orders/clause"
)

// longestSearch is when a search that does not end counts as found. It is wall time.
const longestSearch = 5 * time.Minute

// trials negates one clause after the other, and appends what is found to a file.
type trials struct {
	t        *testing.T
	searches []Scenario
	part     func() Part
	into     *os.File
	limit    int
	reached  []map[int]bool  // by search
	took     []time.Duration // by search
}

// negateAll tries some clauses. A clause is only tried in searches that evaluate it when nothing is negated:
// the others do the same as then. The shortest is first, and all are first searched less far.
func negateAll(t *testing.T, searches []Scenario, part func() Part, limit int, numbers, results string) {
	into, err := os.OpenFile(results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	Must(err)
	defer func() { Must(into.Close()) }()
	r := &trials{t: t, searches: searches, part: part, into: into, limit: limit}
	r.record()
	began, all := time.Now(), strings.Split(numbers, ",")
	for done, text := range all {
		number, err := strconv.Atoi(text)
		Must(err)
		r.write(clause.Trial{Clause: number, Begun: true})
		trial := r.try(number)
		r.write(trial)
		each := time.Since(began) / time.Duration(done+1)
		fmt.Printf("%d of %d, %s left: clause %d: %q in %.1fs\n", done+1, len(all),
			(each * time.Duration(len(all)-done-1)).Round(time.Second), number, trial.Found, trial.Seconds)
	}
}

func (r *trials) write(trial clause.Trial) {
	line, err := json.Marshal(trial)
	Must(err)
	_, err = r.into.Write(append(line, '\n'))
	Must(err)
}

// record searches without a negated clause.
func (r *trials) record() {
	for _, search := range r.searches {
		clause.Reached()
		report := Search(search, r.part(), r.limit)
		if report.Violated != "" {
			r.t.Fatalf("without a negated clause, %s finds: %s", search.Name, report.Violated)
		}
		r.took, r.reached = append(r.took, report.Took), append(r.reached, clause.Reached())
	}
}

func (r *trials) try(number int) (trial clause.Trial) {
	began := time.Now()
	trial = clause.Trial{Clause: number}
	defer func() { trial.Seconds = time.Since(began).Seconds() }()
	var order []int
	for i := range r.searches {
		if r.reached[i][number] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(r.took[a] - r.took[b]) })
	trial.Stories = len(order)
	clause.Negate(number)
	defer clause.Negate(0)
	for _, limit := range []int{r.limit / 10, r.limit} {
		for _, i := range order {
			clear(interned)
			tooLong := time.AfterFunc(longestSearch, func() {
				trial.Found, trial.Story = "it does not end", r.searches[i].Name
				r.write(trial)
				panic(r.searches[i].Name + " does not end")
			})
			report := Search(r.searches[i], r.part(), limit)
			tooLong.Stop()
			if report.Violated != "" {
				trial.Found, trial.Story, trial.States = report.Violated, report.Scenario, report.States
				return trial
			}
		}
	}
	return trial
}
