package selection

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestSettling(t *testing.T) {
	start := time.Unix(100, 0)
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	s := newSettling()
	see := func(after time.Duration, placements ...observedPlacement) time.Duration {
		return s.see(placements, start.Add(after))
	}
	p := chooser("p", false, 3)
	check := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: left = %s, want %s", what, got, want)
		}
	}
	check("first seen", see(0, p), time.Second)
	check("the same, soon after", see(400*time.Millisecond, p), 600*time.Millisecond)
	p.tally.newest = "6"
	check("a slice was written", see(900*time.Millisecond, p), time.Second)
	check("the same, a second after", see(1900*time.Millisecond, p), 0)
	q := chooser("q", false, 1)
	check("with another that is new", see(2*time.Second, p, q), time.Second)
	p.placement.Status.NumberOfSelectedClusters++
	check("the status was written", see(4*time.Second, p), time.Second)
	check("no Placements", see(4*time.Second), 0)

	if s.takeAwaited(key) {
		t.Error("nobody waits yet")
	}
	s.await(key)
	p.tally.slices++
	see(5*time.Second, p)
	if !s.takeAwaited(key) {
		t.Error("who waits is remembered when the Placement changes")
	}
	if s.takeAwaited(key) {
		t.Error("who waited was told")
	}
	s.await(key)
	s.vanished(key)
	if s.takeAwaited(key) {
		t.Error("nobody waits for a Placement that is gone")
	}
}

func TestAbsence(t *testing.T) {
	start := time.Unix(100, 0)
	s := newSettling()
	pair, other := types.NamespacedName{Namespace: "ns", Name: "c"}, types.NamespacedName{Namespace: "ns", Name: "d"}
	check := func(what string, pair types.NamespacedName, after, want time.Duration) {
		t.Helper()
		if got := s.absence(pair, start.Add(after)); got != want {
			t.Errorf("%s: left = %s, want %s", what, got, want)
		}
	}
	check("first seen absent", pair, 0, time.Second)
	check("still absent", pair, 300*time.Millisecond, 700*time.Millisecond)
	check("each pair for itself", other, 900*time.Millisecond, time.Second)
	check("it has lasted", pair, time.Second, 0)
	check("and goes on", pair, time.Hour, 0)
	s.present(pair)
	check("back for a moment", pair, time.Hour, time.Second)
	check("the clock was set back", pair, 0, time.Second)
	s.present(pair)
	s.present(other)
	if len(s.absent) != 0 {
		t.Errorf("remembered though nobody is absent: %v", s.absent)
	}
}
