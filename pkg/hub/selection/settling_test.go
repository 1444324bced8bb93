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
	p.newest = "6"
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
	p.slices++
	see(5*time.Second, p)
	if !s.takeAwaited(key) {
		t.Error("who waits is remembered when the Placement changes")
	}
	if s.takeAwaited(key) {
		t.Error("who waited was told")
	}
	s.await(key)
	s.forget(key)
	if s.takeAwaited(key) {
		t.Error("nobody waits for a Placement that is gone")
	}
}
