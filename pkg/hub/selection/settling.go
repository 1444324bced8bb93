package selection

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// settleTime is how long a cluster must have been absent from the decisions of Placements
// before that counts. OCM writes the slices of a decision one by one, so a cluster that
// moves from one slice to another is in neither for a moment.
//
// It is also how long a Placement with incomplete decisions must have stayed the same
// before that is reported: until then OCM is still writing.
const settleTime = time.Second

// longestAbsence is how long an absence from decisions can be disregarded because slices are
// being written in which the cluster may yet appear. Slices that are written all the time
// must not keep unwanted clusters forever.
const longestAbsence = 10 * time.Second

// maxNarrowed is for how many Placements of a namespace it is remembered by name that they
// narrow what is published there. Any one that exists is added when a pair is next decided.
const maxNarrowed = 1000

// absenceKept is how long an absence is remembered after its last use: callers that fail to
// take something away ask again sooner, and none waits longer at a time.
const absenceKept = rule.LongestMove + time.Minute

// sweepEvery is how often unused entries are looked for.
const sweepEvery = time.Minute

// settling remembers for how long the decisions of each publishing Placement have been the
// same, and since when pairs have been absent from complete decisions.
type settling struct {
	mu      sync.Mutex
	started time.Time // when the rule was prepared
	// inherited are the namespaces that had profiles then. It is nil once starting returns 0.
	inherited map[string]struct{}

	seen map[types.NamespacedName]sighting // by Placement

	// awaiting holds, by Placement, the pairs that wait for its decisions.
	awaiting kube.SetIndex[types.NamespacedName, types.NamespacedName]

	// summaries holds, by Placement, the summary of its slices when they were last read. Otherwise
	// every pair of the namespace would count the decisions for the whole fleet.
	summaries map[types.NamespacedName]rule.Summary

	// narrowed holds, by namespace and name, the Placements that were seen publishing and not
	// seen to cease, though they may have vanished, alone or with their CRD. At most maxNarrowed
	// of each namespace: a tenant may create and delete them forever.
	narrowed map[string]map[string]narrowing

	// absent holds pairs that are absent and from which a caller would take something away.
	// Entries are removed when the pair is present again, or when no caller has asked for
	// absenceKept; swept is when that was last checked.
	absent kube.Debounce[types.NamespacedName]
	swept  time.Time

	// installing holds pairs whose addon is absent though the install strategy may be about to
	// create it again. It is apart from absent, because a tenant's own Placement may end only an
	// absence from its decisions.
	installing kube.Debounce[types.NamespacedName]

	// left holds, by Placement and cluster, since when clusters have been absent from the
	// decisions of one Placement, regardless of others: those from which a caller would take
	// something away because of it.
	left map[types.NamespacedName]*kube.Debounce[string]
}

// narrowing is what is known about a Placement that publishes, or did.
type narrowing struct {
	missing time.Time // when it was first seen missing; zero while it exists

	// counted is true once it is certain that a user deleted it.
	counted bool
}

type sighting struct {
	state   placementState
	since   time.Time // the state
	written time.Time // when a write of a slice was last seen; zero if never
}

// placementState distinguishes states of a Placement's decisions.
type placementState struct {
	uid       types.UID
	summary   rule.Summary
	selected  int32
	undecided string
}

func newSettling() *settling {
	return &settling{
		seen:      map[types.NamespacedName]sighting{},
		awaiting:  kube.SetIndex[types.NamespacedName, types.NamespacedName]{},
		summaries: map[types.NamespacedName]rule.Summary{},
		narrowed:  map[string]map[string]narrowing{},
		left:      map[types.NamespacedName]*kube.Debounce[string]{},
	}
}

func stateOf(p rule.ObservedPlacement) placementState {
	return placementState{
		uid:       p.Placement.UID,
		summary:   p.Summary.WithoutLayout(),
		selected:  p.Placement.Status.NumberOfSelectedClusters,
		undecided: rule.UndecidedReason(p),
	}
}

// summary returns the summary of a Placement's slices.
func (s *settling) summary(placement types.NamespacedName, decisions []clusterv1beta1.PlacementDecision) rule.Summary {
	s.mu.Lock()
	last := s.summaries[placement]
	s.mu.Unlock()
	if last.IsOf(decisions) {
		return last
	}
	last = rule.SummaryOf(decisions)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summaries[placement] = last
	return last
}

// see records the state of the Placements and returns the time until all of them have been
// the same for settleTime; 0 if they have.
func (s *settling) see(placements []rule.ObservedPlacement, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left time.Duration
	for _, p := range placements {
		key := client.ObjectKeyFromObject(p.Placement)
		s.narrow(key, narrowing{})
		last, ok := s.seen[key]
		if state := stateOf(p); !ok || last.state != state {
			if ok && last.state.summary != state.summary {
				last.written = now
			}
			last.state, last.since = state, now
			s.seen[key] = last
		}
		left = max(left, kube.TimeLeft(last.since, settleTime, now))
	}
	s.sweep(now)
	return left
}

// narrow records the state of a Placement that publishes, or did. It requires the lock.
func (s *settling) narrow(key types.NamespacedName, state narrowing) {
	names := s.narrowed[key.Namespace]
	if _, known := names[key.Name]; !known && len(names) >= maxNarrowed {
		return
	}
	if names == nil {
		names = map[string]narrowing{}
		s.narrowed[key.Namespace] = names
	}
	names[key.Name] = state
}

// lost returns, sorted, the Placements of a namespace that were seen publishing, are not
// among the present ones, which are sorted, and have not been missing for long enough to count as deleted.
func (s *settling) lost(namespace string, present []rule.ObservedPlacement) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, state := range s.narrowed[namespace] {
		_, exists := slices.BinarySearchFunc(present, name, func(p rule.ObservedPlacement, name string) int {
			return cmp.Compare(p.Placement.Name, name)
		})
		if !state.counted && !exists {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// start records when the rule was prepared, and which Placements published and which
// namespaces had profiles then.
func (s *settling) start(now time.Time, publishing []types.NamespacedName, namespaces map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started, s.inherited = now, namespaces
	for _, placement := range publishing {
		s.narrow(placement, narrowing{})
	}
}

// starting returns for how long a Placement may be missing that vanished before the rule was
// prepared.
func (s *settling) starting(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return kube.TimeLeft(s.started, kube.AbsenceCounts, now)
}

// startingIn is starting for a namespace that had profiles then; 0 for others.
func (s *settling) startingIn(namespace string, now time.Time) time.Duration {
	s.mu.Lock()
	_, inherited := s.inherited[namespace]
	s.mu.Unlock()
	if !inherited {
		return 0
	}
	return s.starting(now)
}

// missing records that Placements of a namespace do not exist, and returns the time until
// that counts. A Placement is often replaced by deleting and recreating it. One that was not
// seen publishing may have been missing since the start.
func (s *settling) missing(namespace string, names []string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left time.Duration
	for _, name := range names {
		state, known := s.narrowed[namespace][name]
		switch {
		case !known:
			left = max(left, kube.TimeLeft(s.started, kube.AbsenceCounts, now))
			continue
		case state.counted:
			continue
		}
		if state.missing.IsZero() || state.missing.After(now) {
			state.missing = now
			s.narrow(types.NamespacedName{Namespace: namespace, Name: name}, state)
		}
		left = max(left, kube.TimeLeft(state.missing, kube.AbsenceCounts, now))
	}
	return left
}

// rememberDeleted records that those Placements of a namespace that have been missing for long
// enough were deleted, not lost with their CRD: Rule.confirm has made sure of that.
func (s *settling) rememberDeleted(namespace string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, state := range s.narrowed[namespace] {
		if !state.missing.IsZero() && kube.TimeLeft(state.missing, kube.AbsenceCounts, now) == 0 {
			state.counted = true
			s.narrowed[namespace][name] = state
		}
	}
}

// recall records what is absent for a pair, and returns what is remembered about it; Installs is the
// caller's to add. lost says what has become of the Lost Placements.
func (s *settling) recall(
	pair types.NamespacedName, o rule.Observation, result rule.Result, lost lostPlacements, now time.Time,
) rule.Memory {
	s.see(o.Placements, now)
	for _, name := range lost.unpublished {
		s.Unpublished(types.NamespacedName{Namespace: pair.Namespace, Name: name})
	}
	m := rule.Memory{
		Now: now, Vanished: s.missing(pair.Namespace, lost.gone, now),
		Started: s.starting(now), StartedWithProfiles: s.startingIn(pair.Namespace, now),
	}
	if lost.recreated {
		m.Vanished = max(m.Vanished, settleTime)
	}
	if result.ByAddon {
		m.Uninstalled = s.mayReturn(pair, now)
	}
	if rule.IsUnchosen(o, result) {
		m.Absent, m.Settling = s.absence(pair, o.Placements, now)
	}
	return m
}

// absence records that a pair is absent from complete decisions of the Placements, and returns
// since when, and the time until that counts; 0 if it does. The absence must have lasted, and so
// must the slices, but no caller waits for these longer than longestAbsence.
func (s *settling) absence(
	pair types.NamespacedName, placements []rule.ObservedPlacement, now time.Time,
) (since time.Time, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since = s.absent.Since(pair, now)
	return since, s.absenceLeft(since, placements, now)
}

// mayReturn records that the addon of a pair's cluster is absent though the install strategy
// may be about to create it again, and returns since when.
func (s *settling) mayReturn(pair types.NamespacedName, now time.Time) (since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	return s.installing.Since(pair, now)
}

// allInstalling returns the pairs whose addon the install strategy may create again.
func (s *settling) allInstalling() []types.NamespacedName {
	isAddon := func(waiting types.NamespacedName) bool { return waiting.Namespace == "" }
	return slices.DeleteFunc(s.installing.Keys(), isAddon)
}

// leftSince returns since when a cluster has been absent from the decisions of a Placement;
// ok is false if it is not.
func (s *settling) leftSince(placement types.NamespacedName, cluster string) (since time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.left[placement]; left != nil {
		return left.Begun(cluster)
	}
	return time.Time{}, false
}

// absenceLeft returns the time until an absence counts. It requires the lock.
func (s *settling) absenceLeft(since time.Time, placements []rule.ObservedPlacement, now time.Time) time.Duration {
	var writing time.Duration
	for _, p := range placements {
		written := s.seen[client.ObjectKeyFromObject(p.Placement)].written
		writing = max(writing, kube.TimeLeft(written, settleTime, now))
	}
	return max(kube.TimeLeft(since, settleTime, now), min(writing, kube.TimeLeft(since, longestAbsence, now)))
}

// leaving is absence for all clusters from which a caller would take something away because
// they are absent from the decisions of one Placement. The absence of undecided ones
// continues, if it has begun. Other clusters are no longer absent.
func (s *settling) leaving(
	placement types.NamespacedName, observed []rule.ObservedPlacement, clusters, undecided []string, now time.Time,
) map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := cmp.Or(s.left[placement], &kube.Debounce[string]{})
	absent := sets.New(clusters...).Insert(undecided...)
	left.OverUnless(absent.Has)
	waits := make(map[string]time.Duration, len(clusters))
	for _, cluster := range clusters {
		waits[cluster] = s.absenceLeft(left.Since(cluster, now), observed, now)
	}
	s.left[placement] = left
	if left.Len() == 0 {
		delete(s.left, placement)
	}
	return waits
}

// Chosen ends the absence of clusters from the decisions of one Placement.
func (s *settling) Chosen(placement types.NamespacedName, clusters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.left[placement]; left != nil {
		left.Over(clusters...)
	}
}

// sweep forgets the absences of pairs that no caller asks about any more, because they were
// decided and nothing is left to delete. It requires the lock.
func (s *settling) sweep(now time.Time) {
	if kube.TimeLeft(s.swept, sweepEvery, now) > 0 {
		return
	}
	s.swept = now
	if kube.TimeLeft(s.started, kube.AbsenceCounts, now) == 0 {
		s.inherited = nil
	}
	s.absent.Sweep(absenceKept, now)
	s.installing.Sweep(absenceKept, now)
	for namespace, names := range s.narrowed {
		maps.DeleteFunc(names, func(_ string, state narrowing) bool {
			return state.counted && kube.TimeLeft(state.missing, absenceKept, now) == 0
		})
		if len(names) == 0 {
			delete(s.narrowed, namespace)
		}
	}
}

// Present ends the absence of a pair.
func (s *settling) Present(pair types.NamespacedName) { s.absent.Over(pair) }

// await records that a pair waits for the decisions of Placements in its namespace.
func (s *settling) await(pair types.NamespacedName, placements ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range placements {
		s.awaiting.Insert(types.NamespacedName{Namespace: pair.Namespace, Name: name}, pair)
	}
}

// TakeAwaiting returns the pairs that wait for a Placement, and forgets that they do.
func (s *settling) TakeAwaiting(placement types.NamespacedName) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := s.awaiting.Members(placement)
	delete(s.awaiting, placement)
	return pairs
}

// Forget drops what is known of the decisions of a Placement that does not exist, for any reason.
func (s *settling) Forget(placement types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, placement)
	delete(s.awaiting, placement)
	delete(s.summaries, placement)
	delete(s.left, placement)
}

// Unpublished drops a Placement that no longer publishes.
func (s *settling) Unpublished(placement types.NamespacedName) {
	s.Forget(placement)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.narrowed[placement.Namespace], placement.Name)
}

// Widen forgets the Placements of a namespace that is gone.
func (s *settling) Widen(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.narrowed, namespace)
}
