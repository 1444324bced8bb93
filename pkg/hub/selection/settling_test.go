package selection

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// written is a slice of the Placement p at a version.
func written(version string, clusters ...string) *clusterv1beta1.PlacementDecision {
	slice := ocmtest.Slice("p-1", "p", clusters...)
	slice.ResourceVersion = version
	return slice
}

// chosenBy is a publishing Placement with its decisions, which name so many clusters.
func chosenBy(name string, clusters int) rule.ObservedPlacement {
	decisions := ocmtest.Slices(name, ocmtest.Numbered(1, clusters)...)
	return rule.ObservedPlacement{Placement: ocmtest.Publishing(name, clusters), Summary: rule.SummaryOf(decisions)}
}

func TestSettling(t *testing.T) {
	start := time.Unix(100, 0)
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	s := newSettling()
	see := func(after time.Duration, placements ...rule.ObservedPlacement) time.Duration {
		return s.see(placements, start.Add(after))
	}
	p := chosenBy("p", 3)
	check := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: left = %s, want %s", what, got, want)
		}
	}
	check("first seen", see(0, p), time.Second)
	check("the same, soon after", see(400*time.Millisecond, p), 600*time.Millisecond)
	p.Summary = rule.SummaryOf([]clusterv1beta1.PlacementDecision{*written("6", "c1", "c2", "c3")})
	check("a slice was written", see(900*time.Millisecond, p), time.Second)
	check("the same, a second after", see(1900*time.Millisecond, p), 0)
	q := chosenBy("q", 1)
	check("with another that is new", see(2*time.Second, p, q), time.Second)
	p.Placement.Status.NumberOfSelectedClusters++
	check("the status was written", see(4*time.Second, p), time.Second)
	check("no Placements", see(4*time.Second), 0)

	pair := types.NamespacedName{Namespace: key.Namespace, Name: "c4"}
	if got := s.TakeAwaiting(key); len(got) > 0 {
		t.Errorf("no pair waits yet: %v", got)
	}
	s.await(pair, key.Name)
	p.Summary = rule.SummaryOf([]clusterv1beta1.PlacementDecision{*written("7", "c1", "c2", "c3")})
	see(5*time.Second, p)
	if got := s.TakeAwaiting(key); len(got) != 1 || got[0] != pair {
		t.Errorf("%v wait, want the pair, although the Placement has changed", got)
	}
	if got := s.TakeAwaiting(key); len(got) > 0 {
		t.Errorf("%v wait, and were notified", got)
	}
	s.await(pair, key.Name)
	s.Forget(key)
	if got := s.TakeAwaiting(key); len(got) > 0 {
		t.Errorf("%v wait for a deleted Placement", got)
	}
}

// A tenant may create publishing Placements and delete them forever, each with a new name.
func TestNarrowingPlacementsAreBounded(t *testing.T) {
	s := newSettling()
	at := func(n int) types.NamespacedName {
		return types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("p%d", n)}
	}
	for n := range 3 * maxNarrowed {
		s.see([]rule.ObservedPlacement{chosenBy(at(n).Name, 1)}, time.Unix(100, 0))
		s.Forget(at(n))
	}
	if got := len(s.narrowed["ns"]); got != maxNarrowed || len(s.seen) > 0 {
		t.Errorf("%d names and %d sightings are kept", got, len(s.seen))
	}
	for n := range maxNarrowed {
		s.Unpublished(at(n))
	}
	if s.lost("ns", nil) != nil {
		t.Error("Placements that ceased to publish count")
	}
	s.see([]rule.ObservedPlacement{chosenBy("last", 1)}, time.Unix(200, 0))
	s.Forget(types.NamespacedName{Namespace: "ns", Name: "last"})
	if !slices.Equal(s.lost("ns", nil), []string{"last"}) {
		t.Error("a Placement that vanished does not count")
	}
}

func TestAbsence(t *testing.T) {
	start := time.Unix(100, 0)
	s := newSettling()
	pair, other := types.NamespacedName{Namespace: "ns", Name: "c"}, types.NamespacedName{Namespace: "ns", Name: "d"}
	check := func(what string, pair types.NamespacedName, after, want time.Duration) {
		t.Helper()
		if _, got := s.absence(pair, nil, start.Add(after)); got != want {
			t.Errorf("%s: left = %s, want %s", what, got, want)
		}
	}
	check("first seen absent", pair, 0, time.Second)
	check("still absent", pair, 300*time.Millisecond, 700*time.Millisecond)
	check("each pair for itself", other, 900*time.Millisecond, time.Second)
	check("it has lasted", pair, time.Second, 0)
	check("and goes on", pair, time.Hour, 0)
	s.Present(pair)
	check("back for a moment", pair, time.Hour, time.Second)
	check("the clock was set back", pair, 0, time.Second)
	check("it has lasted by the new clock", pair, time.Second, 0)
	s.Present(pair)
	s.Present(other)
	if s.absent.Len() != 0 {
		t.Errorf("remembered though no cluster is absent: %v", s.absent.Keys())
	}
}

func TestAbsenceWhileSlicesAreWritten(t *testing.T) {
	start := time.Unix(100, 0)
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	p, q := chosenBy("p", 3), chosenBy("q", 3)
	s := newSettling()
	// left is how long to wait, when the slices of q have just been written or have not.
	left := func(after time.Duration, isWritten bool) time.Duration {
		if isWritten {
			q.Summary = rule.SummaryOf([]clusterv1beta1.PlacementDecision{*written(after.String(), "c1", "c2", "c3")})
		}
		now, both := start.Add(after), []rule.ObservedPlacement{p, q}
		s.see(both, now)
		_, wait := s.absence(pair, both, now)
		return wait
	}
	check := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: left = %s, want %s", what, got, want)
		}
	}
	check("first seen", left(0, false), time.Second)
	q.Placement.Status.NumberOfSelectedClusters++
	check("a status is no slice", left(500*time.Millisecond, false), 500*time.Millisecond)
	check("a slice was written", left(900*time.Millisecond, true), time.Second)
	check("and then none", left(1500*time.Millisecond, false), 400*time.Millisecond)
	check("another", left(1800*time.Millisecond, true), time.Second)
	check("none for a second", left(2800*time.Millisecond, false), 0)
	for after := 3 * time.Second; after < 10*time.Second; after += 250 * time.Millisecond {
		check("written all the time", left(after, true), min(time.Second, 10*time.Second-after))
	}
	check("written for too long", left(10*time.Second, true), 0)
}

// TestAbsencesAreForgotten: pairs that a Placement has withdrawn take no memory.
func TestAbsencesAreForgotten(t *testing.T) {
	start := time.Unix(100, 0)
	s := newSettling()
	pair := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("c", i)}
	}
	for i := range 1000 {
		s.absence(pair(i), nil, start)
	}
	check := func(after time.Duration, want int) {
		t.Helper()
		if s.see(nil, start.Add(after)); s.absent.Len() != want {
			t.Errorf("%s later, %d are remembered, want %d", after, s.absent.Len(), want)
		}
	}
	check(0, 1000)
	if _, left := s.absence(pair(0), nil, start.Add(90*time.Second)); left != 0 {
		t.Errorf("left = %s after a while", left)
	}
	check(3*time.Minute-1, 1000)
	check(4*time.Minute, 1) // a caller asks for it again and again
	if _, left := s.absence(pair(0), nil, start.Add(4*time.Minute)); left != 0 {
		t.Errorf("left = %s after four minutes", left)
	}
	check(8*time.Minute, 0)
}

func TestSlicesAreCountedOnceUntilTheyChange(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	s := newSettling()
	one := []clusterv1beta1.PlacementDecision{*ocmtest.Slice("p-1", "p", "a")}
	first := s.summary(key, one)
	if again := s.summary(key, one); again != first {
		t.Error("slices that did not change were counted again")
	}
	one[0].Status.Decisions = nil
	one[0].ResourceVersion = "another"
	if changed := s.summary(key, one); !changed.IsOf(one) {
		t.Errorf("after a change: %+v", changed)
	}
	s.Forget(key)
	if len(s.summaries) > 0 {
		t.Errorf("remembered: %v", s.summaries)
	}
}
