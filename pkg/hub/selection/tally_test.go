package selection

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func TestTallyOf(t *testing.T) {
	first, second := slice("p-1", "p", "a", "b"), slice("p-2", "p", "c", "")
	first.ResourceVersion, second.ResourceVersion = "9", "10"
	got := tallyOf([]clusterv1beta1.PlacementDecision{*first, *second})
	if diff := cmp.Diff(tally{decisions: 3, slices: 2, newest: "10"}, got.withoutLayout(), cmp.AllowUnexported(tally{})); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}
}

func TestTallies(t *testing.T) {
	key, other := types.NamespacedName{Namespace: "ns", Name: "p"}, types.NamespacedName{Namespace: "ns", Name: "q"}
	var counts atomic.Int32
	now := tally{decisions: 1}
	count := func() (tally, error) { counts.Add(1); return now, nil }
	get := func(tallies *tallies, want int32, what string) {
		t.Helper()
		counts.Store(0)
		got, err := tallies.of(key, count)
		if err != nil || got != now || counts.Load() != want {
			t.Errorf("%s: %+v, %v after counting %d times; want %+v after %d", what, got, err, counts.Load(), now, want)
		}
	}

	s := newTallies()
	get(s, 1, "nobody tells of changes")
	s.follow()
	get(s, 1, "the routes are not watched")
	s.watch()
	get(s, 1, "their watches may not have begun")
	s.follow()
	get(s, 1, "the first pair")
	get(s, 0, "the next pair")
	now.decisions++
	s.drop(other)
	s.drop(key)
	get(s, 1, "after a change")
	get(s, 0, "the next pair after a change")

	s.drop(key)
	if _, err := s.of(key, func() (tally, error) { return tally{}, errors.New("no") }); err == nil {
		t.Error("no error though counting failed")
	}
	get(s, 1, "after a failure")

	s.drop(key)
	stale := now
	_, _ = s.of(key, func() (tally, error) { s.drop(key); return stale, nil })
	now.decisions++
	get(s, 1, "after a change while it was counted")

	s.drop(key)
	counts.Store(0)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _, _ = s.of(key, count) })
	}
	group.Wait()
	if counts.Load() != 1 {
		t.Errorf("eight at a time counted %d times, want once", counts.Load())
	}
	s.drop(key)
	if len(s.entries) != 0 {
		t.Errorf("remembered: %v", s.entries)
	}
}
