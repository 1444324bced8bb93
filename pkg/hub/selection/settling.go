package selection

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// settleTime is how long a cluster must have been absent from the decisions of Placements
// before that counts. OCM writes the slices of a decision one by one, so a cluster that
// moves from one slice to another is in neither for a moment.
//
// It is also how long a Placement with incomplete decisions must have stayed the same
// before that is reported: until then OCM is still writing.
const settleTime = time.Second

// longestAbsence is how long an absence from decisions can be disregarded because slices
// are being written in which the cluster may yet appear. Slices that are written all the
// time must not keep unwanted clusters for ever.
const longestAbsence = 10 * time.Second

// maxNarrowed is for how many Placements of a namespace it is remembered by name that they
// narrow what is published there. Any one that exists is added when a pair is next decided.
const maxNarrowed = 1000

// absenceKept is how long an absence is remembered after its last use: callers that fail to
// take something away ask again sooner.
const absenceKept = time.Minute

// settling remembers for how long the decisions of each publishing Placement have been the
// same, and since when pairs have been absent from complete decisions.
type settling struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]sighting // by Placement

	// narrowed holds, by namespace, the Placements that were seen publishing and not seen to
	// cease, though they may have vanished with their CRD. At most maxNarrowed of each
	// namespace: a tenant may create and delete them for ever.
	narrowed kube.SetIndex[string, string]

	// absent holds pairs that are absent and from which a caller would take something away.
	// Entries are removed when the pair is present again, or when nobody has asked for
	// absenceKept; swept is when that was last checked.
	absent map[types.NamespacedName]absence
	swept  time.Time

	// left holds, by Placement and cluster, since when clusters have been absent from the
	// decisions of one Placement, whatever others decide: those from which a caller would
	// take something away because of it.
	left map[types.NamespacedName]map[string]time.Time
}

type absence struct {
	since time.Time // when the pair was first seen absent
	asked time.Time // when a caller last asked
}

type sighting struct {
	state   placementState
	since   time.Time // the state
	written time.Time // when a write of a slice was last seen; zero if never
	awaited bool
}

// placementState distinguishes states of a Placement's decisions.
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
		absent:   map[types.NamespacedName]absence{},
		left:     map[types.NamespacedName]map[string]time.Time{},
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

// see records the state of the Placements and returns the time until all of them have been
// the same for settleTime; 0 if they have.
func (s *settling) see(placements []observedPlacement, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left time.Duration
	for _, p := range placements {
		key := client.ObjectKeyFromObject(p.placement)
		if len(s.narrowed[key.Namespace]) < maxNarrowed {
			s.narrowed.Insert(key.Namespace, key.Name)
		}
		last, ok := s.seen[key]
		if state := stateOf(p); !ok || last.state != state {
			if ok && last.state.tally != state.tally {
				last.written = now
			}
			last.state, last.since = state, now
			s.seen[key] = last
		}
		left = max(left, timeLeft(last.since, settleTime, now))
	}
	s.sweep(now)
	return left
}

// timeLeft returns the time until something has lasted long enough. A clock that is set
// back makes nobody wait longer.
func timeLeft(since time.Time, least time.Duration, now time.Time) time.Duration {
	return min(max(since.Add(least).Sub(now), 0), least)
}

// absence records that a pair is absent from complete decisions of the Placements, and
// returns the time until that counts; 0 if it does. The absence must have lasted, and so
// must the slices, but nobody waits for these longer than longestAbsence.
func (s *settling) absence(
	pair types.NamespacedName, placements []observedPlacement, now time.Time,
) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.absent[pair]
	if !ok || entry.since.After(now) { // the latter if the clock was set back
		entry.since = now
	}
	entry.asked = now
	s.absent[pair] = entry
	return s.absenceLeft(entry.since, placements, now)
}

// absenceLeft returns the time until an absence counts. It requires the lock.
func (s *settling) absenceLeft(since time.Time, placements []observedPlacement, now time.Time) time.Duration {
	var writing time.Duration
	for _, p := range placements {
		written := s.seen[client.ObjectKeyFromObject(p.placement)].written
		writing = max(writing, timeLeft(written, settleTime, now))
	}
	return max(timeLeft(since, settleTime, now), min(writing, timeLeft(since, longestAbsence, now)))
}

// leaving is absence for all clusters from which a caller would take something away because
// they are absent from the complete decisions of one Placement. Other clusters are no
// longer absent.
func (s *settling) leaving(
	placement types.NamespacedName, observed []observedPlacement, clusters []string, now time.Time,
) map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.left[placement]
	current := make(map[string]time.Time, len(clusters))
	waits := make(map[string]time.Duration, len(clusters))
	for _, cluster := range clusters {
		since, ok := before[cluster]
		if !ok || since.After(now) { // the latter if the clock was set back
			since = now
		}
		current[cluster] = since
		waits[cluster] = s.absenceLeft(since, observed, now)
	}
	if len(current) > 0 {
		s.left[placement] = current
	} else {
		delete(s.left, placement)
	}
	return waits
}

// chosen ends the absence of clusters from the decisions of one Placement.
func (s *settling) chosen(placement types.NamespacedName, clusters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cluster := range clusters {
		delete(s.left[placement], cluster)
	}
}

// sweep forgets the absences of pairs that nobody asks about any more, because they were
// decided and nothing is left to take away. It requires the lock.
func (s *settling) sweep(now time.Time) {
	if timeLeft(s.swept, absenceKept, now) > 0 {
		return
	}
	s.swept = now
	maps.DeleteFunc(s.absent, func(_ types.NamespacedName, entry absence) bool {
		return timeLeft(entry.asked, absenceKept, now) == 0
	})
}

// present ends the absence of a pair.
func (s *settling) present(pair types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.absent, pair)
}

// await records that pairs of the namespace wait for a Placement's decisions.
func (s *settling) await(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[placement]
	seen.awaited = true
	s.seen[placement] = seen
}

// takeAwaited reports whether pairs wait for a Placement, and forgets that they do.
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

// vanished drops a Placement that does not exist, for whatever reason.
func (s *settling) vanished(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, placement)
	delete(s.left, placement)
}

// unpublished drops a Placement that no longer publishes.
func (s *settling) unpublished(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, placement)
	delete(s.left, placement)
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
