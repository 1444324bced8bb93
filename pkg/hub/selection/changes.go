package selection

import (
	"context"

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
	early       kube.Subscribers[types.NamespacedName] // notified of events
	definitions kube.Subscribers[context.Context]      // notified of CRDs
	install     kube.Subscribers[string]               // notified of the install strategy's Placements, by namespace
	pairs       kube.Memory[types.NamespacedName, trackedState]
}

// trackedState is the part of a pair's state whose changes are announced.
type trackedState struct {
	answer      rule.Answer
	profile     types.UID
	marked      bool
	terminating bool
}

// unselected is the state of a pair that has no entry: an unseen pair that is unselected
// and has no profile triggers nothing.
var unselected = trackedState{answer: rule.No}

// doubt records that a subscriber knows that a pair's answer is unknown, so that it is
// notified of the next one.
func (t *changeTracker) doubt(pair types.NamespacedName) {
	if !t.changed.Any() {
		return
	}
	t.pairs.Update(pair, func(state trackedState, known bool) (trackedState, bool) {
		if !known {
			state = unselected
		}
		state.answer = rule.Unknown
		return state, true
	})
}

// track records a pair's answer and profile (nil: none), and tells subscribers of a change.
// Without subscribers it records nothing.
func (t *changeTracker) track(
	pair types.NamespacedName, answer rule.Answer, profile *inventoryv1alpha1.ClusterProfile,
) {
	if !t.changed.Any() {
		return
	}
	now := trackedState{answer: answer}
	if profile != nil {
		now.profile, now.marked, now.terminating = profile.UID, rule.IsMarked(profile), profile.DeletionTimestamp != nil
	}
	var isNew bool
	t.pairs.Update(pair, func(before trackedState, known bool) (trackedState, bool) {
		if !known {
			before = unselected
		}
		isNew = before != now
		return now, now != unselected
	})
	if isNew {
		t.changed.Tell(pair)
	}
}
