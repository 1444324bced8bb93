package inventory

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Answer is what the rule of selection says of one pair of namespace and cluster.
// Only No may take anything away.
type Answer int

const (
	// Unknown says that it cannot be told, or not yet.
	Unknown Answer = iota
	// No says that the namespace is to hold no profile of the cluster.
	No
	// Yes says that the namespace is to hold a profile of the cluster.
	Yes
)

// Selection is the rule's answer for a pair, for those who rest something else
// on it than the profile.
type Selection struct {
	Answer Answer

	// Why is, for No and Unknown, a fragment of a sentence about the cluster.
	Why string

	// Again is set when time alone will change the answer: when to ask again.
	Again time.Duration
}

// notYet is how soon to ask again while the caches are being filled.
const notYet = time.Second

// Selected applies the rule to a pair as the caches are. An absence from
// Placements' decisions is Unknown until it has lasted.
func (i *Inventory) Selected(ctx context.Context, pair types.NamespacedName) (Selection, error) {
	if !i.started.Load() {
		return Selection{Why: "has not been looked at yet", Again: notYet}, nil
	}
	return i.pairs.selected(ctx, pair)
}

func (r *Reconciler) selected(ctx context.Context, pair types.NamespacedName) (Selection, error) {
	o, err := observe(ctx, r.reader, pair)
	if err != nil {
		return Selection{}, err
	}
	if !o.profileAPI {
		return Selection{Why: "cannot be selected: the hub does not serve " + profileCRD}, nil
	}
	s := selectPair(o)
	if s.byPlacement {
		if left := r.settling.see(o.placements, r.clock.Now()); left > 0 {
			return Selection{Why: s.why, Again: left}, nil
		}
	}
	return Selection{Answer: s.answer, Why: s.why}, nil
}

// answers remembers what was last told of each pair, so that only changes are
// told. A pair that is not selected and has no profile has no entry.
type answers struct {
	changed func(types.NamespacedName)

	mu    sync.Mutex
	pairs map[types.NamespacedName]told
}

// told is the part of a pair's state whose change is told.
type told struct {
	answer  Answer
	profile types.UID
	marked  bool
	going   bool
}

func newAnswers(changed func(types.NamespacedName)) *answers {
	return &answers{changed: changed, pairs: map[types.NamespacedName]told{}}
}

// tell says that a pair's answer is this, and its profile that (nil: none), to
// whoever wants to know, unless that was said before. Of a pair of which nothing
// was ever said, nobody is told that it is not selected and has no profile.
func (a *answers) tell(pair types.NamespacedName, answer Answer, profile *inventoryv1alpha1.ClusterProfile) {
	if a.changed == nil {
		return
	}
	now := told{answer: answer}
	if profile != nil {
		now.profile, now.marked, now.going = profile.UID, isMarked(profile), profile.DeletionTimestamp != nil
	}
	nothing := told{answer: No}
	a.mu.Lock()
	before, known := a.pairs[pair]
	if !known {
		before = nothing
	}
	if now == nothing {
		delete(a.pairs, pair)
	} else {
		a.pairs[pair] = now
	}
	a.mu.Unlock()
	if before != now {
		a.changed(pair)
	}
}
