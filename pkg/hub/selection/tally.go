package selection

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// tally summarizes all slices of a Placement's decisions.
type tally struct {
	// decisions is how many clusters all slices contain. A cluster in two slices, because
	// OCM has written only one of them so far, counts once.
	decisions int

	// slices and newest (a resource version) distinguish states of the slices.
	slices int
	newest string

	// layout is nil if there is none to look at.
	layout *layout
}

func tallyOf(decisions []clusterv1beta1.PlacementDecision) tally {
	t := tally{slices: len(decisions)}
	clusters := map[string]struct{}{}
	for i := range decisions {
		for _, decision := range decisions[i].Status.Decisions {
			if decision.ClusterName != "" {
				clusters[decision.ClusterName] = struct{}{}
			}
		}
		t.newest = later(t.newest, decisions[i].ResourceVersion)
	}
	t.decisions = len(clusters)
	t.layout = layoutOf(decisions)
	return t
}

// withoutLayout returns what distinguishes it from other tallies.
func (t tally) withoutLayout() tally {
	t.layout = nil
	return t
}

// isOf reports whether it is the tally of the slices' present state, provided that it is
// the tally of one of their states.
func (t tally) isOf(decisions []clusterv1beta1.PlacementDecision) bool {
	newest := ""
	for i := range decisions {
		newest = later(newest, decisions[i].ResourceVersion)
	}
	return t.slices == len(decisions) && t.newest == newest
}

// tallies remembers the tally of each publishing Placement until one of its slices changes.
// Otherwise every pair of the namespace would count the decisions for the whole fleet.
// There is one entry for each publishing Placement that was observed. It is safe for
// concurrent use.
type tallies struct {
	mu sync.Mutex

	// watched is true when the routes, which drop changed tallies, are watched; followed,
	// when these watches are known to have begun. Until then nothing is remembered.
	watched, followed bool

	entries map[types.NamespacedName]*tallyEntry // by Placement
}

type tallyEntry struct {
	once  sync.Once
	tally tally
	err   error
}

func newTallies() *tallies {
	return &tallies{entries: map[types.NamespacedName]*tallyEntry{}}
}

// watch records that drop will be called after every change.
func (t *tallies) watch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = true
}

// follow begins to remember: drop is called after every change from now on.
func (t *tallies) follow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followed = t.watched
}

// of returns the tally of a Placement. It calls count, which must read the cache, unless
// that was done since the last change. An entry that was dropped while its count ran serves
// the callers that wait for it, but no later ones.
func (t *tallies) of(placement types.NamespacedName, count func() (tally, error)) (tally, error) {
	t.mu.Lock()
	if !t.followed {
		t.mu.Unlock()
		return count()
	}
	entry, ok := t.entries[placement]
	if !ok {
		entry = &tallyEntry{}
		t.entries[placement] = entry
	}
	t.mu.Unlock()
	entry.once.Do(func() { entry.tally, entry.err = count() })
	if entry.err != nil {
		t.drop(placement)
	}
	return entry.tally, entry.err
}

// drop forgets a tally: a slice has changed, or the Placement no longer publishes.
func (t *tallies) drop(placement types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, placement)
}
