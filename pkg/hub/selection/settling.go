package selection

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// settleTime is how long a cluster must have been absent from the decisions of
// Placements before that means anything. OCM writes the slices of a decision one by
// one, so a cluster that moves from one slice to another is in none for a moment.
//
// It is also how long a Placement without complete decisions must have stayed the
// same before that is reported: until then OCM is still writing.
const settleTime = time.Second

// settling remembers how long the decisions of each publishing Placement have been
// the same, and since when pairs have been absent from complete decisions. What
// happens to other clusters does not prolong the absence of one.
type settling struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]sighting // by Placement

	// narrowed holds, by namespace, the Placements that were seen publishing and not
	// seen to cease, though they may have vanished with their CRD.
	narrowed kube.SetIndex[string, string]

	// absent holds, by pair, when it was first seen absent. There are entries only
	// for absent pairs from which somebody would take something away, and only as
	// long as they are absent.
	absent map[types.NamespacedName]time.Time
}

type sighting struct {
	state   placementState
	since   time.Time
	awaited bool
}

// placementState tells one state of a Placement's decisions from another.
type placementState struct {
	uid       types.UID
	tally     tally
	selected  int32
	undecided string
}

func newSettling() *settling {
	return &settling{
		seen:     map[types.NamespacedName]sighting{},
		narrowed: kube.SetIndex[string, string]{},
		absent:   map[types.NamespacedName]time.Time{},
	}
}

func stateOf(p observedPlacement) placementState {
	return placementState{
		uid:       p.placement.UID,
		tally:     p.tally,
		selected:  p.placement.Status.NumberOfSelectedClusters,
		undecided: undecidedReason(p),
	}
}

// see takes note of the Placements and returns how long it takes until all of them
// have been the same for settleTime: 0 when they have.
func (s *settling) see(placements []observedPlacement, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left time.Duration
	for _, p := range placements {
		key := types.NamespacedName{Namespace: p.placement.Namespace, Name: p.placement.Name}
		s.narrowed.Insert(key.Namespace, key.Name)
		state := stateOf(p)
		before, ok := s.seen[key]
		if !ok || before.state != state {
			before = sighting{state: state, since: now, awaited: ok && before.awaited}
			s.seen[key] = before
		}
		left = max(left, timeLeft(before.since, now))
	}
	return left
}

// timeLeft returns how long it takes until something has lasted for settleTime. A
// clock that is set back makes nobody wait for longer.
func timeLeft(since, now time.Time) time.Duration {
	return min(max(since.Add(settleTime).Sub(now), 0), settleTime)
}

// absence takes note that a pair is absent from complete decisions, and returns how
// long it takes until that has lasted for settleTime: 0 when it has.
func (s *settling) absence(pair types.NamespacedName, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, ok := s.absent[pair]
	if !ok {
		since = now
		s.absent[pair] = now
	}
	return timeLeft(since, now)
}

// present ends the absence of a pair.
func (s *settling) present(pair types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.absent, pair)
}

// await records that pairs of the namespace wait for a Placement to be decided.
func (s *settling) await(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[placement]
	seen.awaited = true
	s.seen[placement] = seen
}

// takeAwaited tells whether pairs wait for a Placement, and forgets that they do.
func (s *settling) takeAwaited(placement types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen[placement]
	if !ok || !seen.awaited {
		return false
	}
	seen.awaited = false
	s.seen[placement] = seen
	return true
}

// vanished drops a Placement that is not there, for whatever reason.
func (s *settling) vanished(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, placement)
}

// unpublished drops a Placement that does not publish any more.
func (s *settling) unpublished(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, placement)
	s.narrowed.Delete(placement.Namespace, placement.Name)
}

// isNarrowed reports whether Placements of a namespace were seen publishing and not
// seen to cease.
func (s *settling) isNarrowed(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.narrowed[namespace]) > 0
}

// widen records that no Placement of a namespace publishes: all were deleted on
// purpose, or with the namespace.
func (s *settling) widen(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.narrowed, namespace)
}
