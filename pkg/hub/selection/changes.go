package selection

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// changeTracker remembers the state of each pair that was last announced to subscribers, so
// that they are notified of changes only. A pair that is not selected and has no profile has
// no entry.
type changeTracker struct {
	changed     kube.Subscribers[types.NamespacedName]
	references  kube.Subscribers[types.NamespacedName] // notified of what AllowReferences records
	early       kube.Subscribers[types.NamespacedName] // notified of events
	definitions kube.Subscribers[context.Context]      // notified of CRDs
	install     kube.Subscribers[string]               // notified of the install strategy's Placements, by namespace
	pairs       kube.Memory[types.NamespacedName, trackedState]

	referable atomic.Int64 // number of pairs that may be referred to
}

// trackedState is the part of a pair's state whose changes are announced.
type trackedState struct {
	answer  rule.Answer
	profile trackedProfile // the zero value if there is none
	refer   rule.Answer    // whether PlacementDecisions may refer to the profile
}

type trackedProfile struct {
	uid                 types.UID
	marked, terminating bool
}

// isLost reports whether a profile was there before, and is no longer the same or as good.
func (p trackedProfile) isLost(now trackedProfile) bool {
	return p.uid != "" && (now.uid != p.uid || p.marked && !now.marked || now.terminating && !p.terminating)
}

// unselected is the state of a pair that has no entry: an unseen pair that is unselected
// and has no profile triggers nothing.
var unselected = trackedState{answer: rule.No}

// doubt records that a subscriber has read an answer about a pair that is not Yes, so that it is notified
// when Yes is tracked again; if the answer is undecided, of any next one. wasYes reports whether Yes was
// tracked last.
func (t *changeTracker) doubt(pair types.NamespacedName, undecided bool) (wasYes bool) {
	return t.update(pair, func(state *trackedState) {
		if undecided || state.answer == rule.Yes {
			state.answer = rule.Unknown
		}
	}).answer == rule.Yes
}

// track records a pair's answer and profile (nil: none), and notifies subscribers of a change.
// Whether PlacementDecisions may refer to a profile is forgotten when that is replaced, loses the mark or
// begins to be deleted. If it was recorded before the cache showed a profile, it is about the one that
// has been created.
func (t *changeTracker) track(
	pair types.NamespacedName, answer rule.Answer, profile *inventoryv1alpha1.ClusterProfile,
) {
	var now trackedProfile
	if profile != nil {
		now = trackedProfile{profile.UID, rule.IsMarked(profile), profile.DeletionTimestamp != nil}
	}
	if before := t.update(pair, func(state *trackedState) {
		if state.profile.isLost(now) {
			state.refer = rule.Unknown
		}
		state.answer, state.profile = answer, now
	}); before.answer != answer || before.profile != now {
		t.changed.Notify(pair)
	}
}

// allow records whether PlacementDecisions may refer to a pair's profile, and notifies their
// subscribers of a change.
func (t *changeTracker) allow(pair types.NamespacedName, answer rule.Answer) {
	if before := t.update(pair, func(state *trackedState) { state.refer = answer }); before.refer != answer {
		t.references.Notify(pair)
	}
}

// update changes a pair's state, and returns the one before. Without subscribers it records
// nothing.
func (t *changeTracker) update(pair types.NamespacedName, change func(*trackedState)) (before trackedState) {
	if !t.changed.Any() && !t.references.Any() {
		return before
	}
	t.pairs.Update(pair, func(now trackedState, known bool) (trackedState, bool) {
		if !known {
			now = unselected
		}
		before = now
		change(&now)
		if before.refer == rule.Yes {
			t.referable.Add(-1)
		}
		if now.refer == rule.Yes {
			t.referable.Add(1)
		}
		return now, now != unselected
	})
	return before
}

// Track notifies subscribers of a pair if its answer or its profile (nil: none) differs from
// the last tracked one.
func (r *Rule) Track(pair types.NamespacedName, answer rule.Answer, profile *inventoryv1alpha1.ClusterProfile) {
	r.changes.track(pair, answer, profile)
}

// Subscribe makes Track call changed for a pair whose answer has changed, or whose profile
// was created, deleted or began to be deleted, or got or lost the mark. changed must return
// at once.
func (r *Rule) Subscribe(changed func(pair types.NamespacedName)) {
	r.changes.changed.Subscribe(changed)
}

// AllowReferences records whether PlacementDecisions may refer to a pair's profile: Yes once it
// exists, with everything that consumers need, and No from before it is deleted. While that is
// Unknown, as for every pair after a start, references stay and none is added. A profile that
// has vanished, or was replaced, is Unknown. Without subscribers nothing is recorded.
func (r *Rule) AllowReferences(pair types.NamespacedName, answer rule.Answer) {
	r.changes.allow(pair, answer)
}

// Referable returns what AllowReferences recorded.
func (r *Rule) Referable(pair types.NamespacedName) rule.Answer {
	state, _ := r.changes.pairs.Load(pair)
	return state.refer
}

// AnyReferable reports whether PlacementDecisions may refer to any profile at all.
func (r *Rule) AnyReferable() bool { return r.changes.referable.Load() > 0 }

// SubscribeReferences makes AllowReferences call changed for a pair of which it records
// something new. changed must return at once.
func (r *Rule) SubscribeReferences(changed func(pair types.NamespacedName)) {
	r.changes.references.Subscribe(changed)
}

// SubscribeEarly makes the routes call touched for every pair that an event concerns,
// before the pair is reconciled, and often without any change for it. So withdrawals need
// not wait for the pair's turn. touched must return at once.
func (r *Rule) SubscribeEarly(touched func(pair types.NamespacedName)) {
	r.changes.early.Subscribe(touched)
}
