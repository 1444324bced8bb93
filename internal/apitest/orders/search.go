package orders

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Scenario is a first state, and what may happen then.
type Scenario struct {
	Name  string
	Pairs []types.NamespacedName

	// Begin makes the hub, of which a manager that starts knows everything.
	Begin func(s *State)

	// Late is what happens next, and what the manager has seen when the search begins; nil: nothing.
	Late func(s *State)

	// ExclusiveOnly publishes only through exclusive sets.
	ExclusiveOnly bool

	// Changes by others happen at most once each, in any order, at most Budget of them.
	Changes []Change
	Budget  int

	// Tick passes at most Ticks times.
	Tick  time.Duration
	Ticks int

	Crashes int
	Losses  int // of answers
}

// Change is something that others do.
type Change struct {
	Name string
	If   func(s *State) bool // it can be done; nil: always
	Do   func(s *State)
}

// Report is what a search has found.
type Report struct {
	Scenario            string
	States, Transitions int
	Depth, Quiescent    int
	Took                time.Duration

	// Violated is the invariant that was, if any, and Trace the shortest way there.
	Violated string
	Trace    []string

	// Cut is true if the search ended at its limit.
	Cut bool
}

// node is how a state was reached.
type node struct {
	parent int
	step   string
	depth  int
}

// Search visits every state of a scenario, at most limit of them, until an invariant is violated. A panic
// is a violation.
func Search(scenario Scenario, part Part, limit int) (report Report) {
	began := time.Now()
	report = Report{Scenario: scenario.Name}
	defer func() { report.Took = time.Since(began) }()
	var nodes []node
	at, doing := -1, "the start"
	trace := func() []string {
		steps := []string{doing}
		for i := at; i > 0; i = nodes[i].parent {
			steps = append(steps, nodes[i].step)
		}
		slices.Reverse(steps)
		return steps
	}
	fail := func(what, how string) { report.Violated, report.Trace = what, append(trace(), "=> "+how) }
	defer func() {
		if recovered := recover(); recovered != nil {
			fail(Panics, fmt.Sprint(recovered))
		}
	}()
	w, first := newWorld(scenario, part)
	visited := map[[sha256.Size]byte]struct{}{}
	frontier := []*State{first}
	nodes = append(nodes, node{parent: -1})
	visited[sha256.Sum256(first.dump(nil))] = struct{}{}
	var buffer []byte
	for next := 0; next < len(frontier); next++ {
		at = next
		s := frontier[next]
		frontier[next] = nil
		report.States++
		report.Depth = nodes[next].depth
		if s.isIdle() && (part == nil || part.Idle(s)) {
			doing = "nothing more happens"
			report.Quiescent++
			if err := w.checkQuiescence(s); err != nil {
				fail(parts(err))
				return report
			}
		}
		if len(nodes) >= limit {
			report.Cut = true
			continue
		}
		w.now = s
		for _, step := range w.steps(s) {
			successor := s.copy()
			w.recall(successor)
			doing = step.Name
			report.Transitions++
			if err := step.Do(successor); err != nil {
				fail(parts(err))
				return report
			}
			buffer = successor.dump(buffer[:0])
			sum := sha256.Sum256(buffer)
			if _, known := visited[sum]; known {
				continue
			}
			visited[sum] = struct{}{}
			nodes = append(nodes, node{parent: next, step: step.Name, depth: nodes[next].depth + 1})
			frontier = append(frontier, successor)
		}
	}
	return report
}

// Panics is the invariant that nothing panics.
const Panics = "a panic"

func parts(err error) (what, how string) {
	if violation := (*Violation)(nil); errors.As(err, &violation) {
		return violation.What, violation.How
	}
	return "an error", err.Error()
}

// quietTick is how much time passes at once when nothing else happens. Three of them are longer
// than any wait of the rule; one is shorter than what the rule remembers.
const quietTick = 100 * time.Second

// checkQuiescence lets everything happen but changes by others, and checks where it ends.
func (w *World) checkQuiescence(from *State) error {
	s := from.copy()
	w.recall(s)
	still := 0
	for round := range 40 {
		before := s.progress()
		if err := w.settle(s); err != nil {
			return err
		}
		if round == 1 {
			if err := w.checkLingering(s); err != nil {
				return err
			}
		}
		if s.progress() == before {
			still++
		} else {
			still = 0
		}
		if still == 3 {
			return w.checkEnd(s)
		}
		w.pass(s, quietTick)
	}
	return Violated(Restless, "after 40 rounds")
}

// shortTick is longer than the waits that begin when others are over, but the longest.
const shortTick = 11 * time.Second

// checkLingering checks, quietTick and shortTick after the last event, that nothing is left, unless a cluster may
// still return.
func (w *World) checkLingering(s *State) error {
	w.pass(s, shortTick)
	for range 2 { // the second time, what follows from the last writes, which changes no version
		if err := w.settle(s); err != nil {
			return err
		}
	}
	mayReturn := false
	for _, pair := range w.Pairs {
		if s.truth(pair) == no && s.onHub().mayReturn(pair) {
			mayReturn = true
			continue
		}
		profile := Get[*inventoryv1alpha1.ClusterProfile](s, Profiles, pair)
		if s.truth(pair) == no && IsMarked(profile) {
			return Violated(ProfileLingers, "%s", pair)
		}
	}
	if w.Part != nil && !mayReturn {
		return w.Part.Check(w, s)
	}
	return nil
}

// progress changes with every write.
func (s *State) progress() [kinds]int { return s.versions }

// settle lets what is in progress end.
func (w *World) settle(s *State) error {
	for range 20 {
		version := s.progress()
		for _, step := range w.steps(s) {
			isOwn := strings.HasPrefix(step.Name, "deliver ") || strings.HasPrefix(step.Name, "reconcile ") ||
				strings.HasPrefix(step.Name, "send ") && !strings.HasSuffix(step.Name, "lost")
			if !isOwn {
				continue
			}
			for _, again := range w.steps(s) { // a step before it may have made it impossible
				if again.Name == step.Name {
					w.recall(s)
					if err := again.Do(s); err != nil {
						return err
					}
				}
			}
		}
		if s.progress() == version && s.isIdle() && (w.Part == nil || w.Part.Idle(s)) {
			return nil
		}
	}
	return Violated(Restless, "twenty times in a row without any time between")
}

func (w *World) checkEnd(s *State) error {
	for _, pair := range w.Pairs {
		profile := Get[*inventoryv1alpha1.ClusterProfile](s, Profiles, pair)
		isThere := IsMarked(profile)
		isForeign := profile != nil && !IsOurs(profile)
		switch truth := s.truth(pair); {
		case truth == yes && !isThere && !isForeign, truth == no && isThere:
			return Violated(ProfileWrong, "%s is %s, and a profile of ours is there: %t", pair, truth, isThere)
		}
	}
	if w.Part != nil {
		return w.Part.Check(w, s)
	}
	return nil
}

// String summarizes a report in one line.
func (r Report) String() string {
	end := ""
	if r.Cut {
		end = " (cut)"
	}
	return fmt.Sprintf("%-28s %8d states %9d transitions depth %2d, %6d ends, %6s%s",
		r.Scenario, r.States, r.Transitions, r.Depth, r.Quiescent, r.Took.Round(100*time.Millisecond), end)
}
