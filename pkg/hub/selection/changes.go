package selection

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// changeTracker remembers the state of each pair that was last announced to subscribers, so
// that they are notified of changes only. A pair that is not selected and has no profile has
// no entry.
type changeTracker struct {
	mu          sync.Mutex
	subscribers []func(types.NamespacedName)
	early       []func(types.NamespacedName) // notified of events
	definitions []func(context.Context)      // notified of CRDs
	install     []func(namespace string)     // notified of the install strategy's Placements
	pairs       map[types.NamespacedName]trackedState
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

func newChangeTracker() *changeTracker {
	return &changeTracker{pairs: map[types.NamespacedName]trackedState{}}
}

func (t *changeTracker) subscribe(changed func(types.NamespacedName)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, changed)
}

func (t *changeTracker) subscribeEarly(touched func(types.NamespacedName)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.early = append(t.early, touched)
}

func (t *changeTracker) subscribeDefinitions(changed func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.definitions = append(t.definitions, changed)
}

func (t *changeTracker) subscribeInstall(changed func(string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.install = append(t.install, changed)
}

func (t *changeTracker) announceInstall(namespace string) {
	t.mu.Lock()
	subscribers := t.install
	t.mu.Unlock()
	for _, changed := range subscribers {
		changed(namespace)
	}
}

// announceDefinitions notifies subscribers that the state of a CRD has changed.
func (t *changeTracker) announceDefinitions(ctx context.Context) {
	t.mu.Lock()
	subscribers := t.definitions
	t.mu.Unlock()
	for _, changed := range subscribers {
		changed(ctx)
	}
}

// announce notifies early subscribers of a pair that an event concerns.
func (t *changeTracker) announce(pair types.NamespacedName) {
	t.mu.Lock()
	early := t.early
	t.mu.Unlock()
	for _, touched := range early {
		touched(pair)
	}
}

// doubt records that a subscriber knows that a pair's answer is unknown, so that it is
// notified of the next one.
func (t *changeTracker) doubt(pair types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subscribers) == 0 {
		return
	}
	state, known := t.pairs[pair]
	if !known {
		state = unselected
	}
	state.answer = rule.Unknown
	t.pairs[pair] = state
}

// track records a pair's answer and profile (nil: none), and tells subscribers of a change.
// Without subscribers it records nothing.
func (t *changeTracker) track(
	pair types.NamespacedName, answer rule.Answer, profile *inventoryv1alpha1.ClusterProfile,
) {
	now := trackedState{answer: answer}
	if profile != nil {
		now.profile, now.marked, now.terminating = profile.UID, rule.IsMarked(profile), profile.DeletionTimestamp != nil
	}
	for _, changed := range t.replace(pair, now) {
		changed(pair)
	}
}

// replace records a pair's state and returns the subscribers to notify.
func (t *changeTracker) replace(pair types.NamespacedName, now trackedState) []func(types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subscribers) == 0 {
		return nil
	}
	before, known := t.pairs[pair]
	if !known {
		before = unselected
	}
	if now == unselected {
		delete(t.pairs, pair)
	} else {
		t.pairs[pair] = now
	}
	if before == now {
		return nil
	}
	return t.subscribers
}
