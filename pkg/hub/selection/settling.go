package selection

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// settleTime is how long a Placement's decisions must stay the same before the
// absence of a cluster from them means anything. OCM writes the slices of a
// decision one by one, so a cluster that moves from one slice to another is in
// none for a moment.
const settleTime = time.Second

// settling remembers how long the decisions of each publishing Placement have been
// the same.
type settling struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]sighting
}

type sighting struct {
	state   placementState
	since   time.Time
	awaited bool
}

// placementState tells one state of a Placement's decisions from another.
type placementState struct {
	uid       types.UID
	slices    int
	newest    string
	decisions int
	selected  int32
	undecided string
}

func newSettling() *settling {
	return &settling{seen: map[types.NamespacedName]sighting{}}
}

func stateOf(p observedPlacement) placementState {
	return placementState{
		uid:       p.placement.UID,
		slices:    p.slices,
		newest:    p.newest,
		decisions: p.decisions,
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
		state := stateOf(p)
		before, ok := s.seen[key]
		if !ok || before.state != state {
			before = sighting{state: state, since: now, awaited: ok && before.awaited}
			s.seen[key] = before
		}
		left = max(left, before.since.Add(settleTime).Sub(now))
	}
	return left
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

// forget drops a Placement that is gone.
func (s *settling) forget(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, placement)
}
