package watch

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Priorities of requests in a controller's queue; higher ones are served first.
const (
	// PriorityHigh is for removals.
	PriorityHigh = 100

	// PriorityLow is for work that may wait, such as first writes after a start.
	PriorityLow = handler.LowPriority

	// PriorityNormal is the queue's default.
	PriorityNormal = 0
)

// Trigger is a source of a controller's requests that other code fills by key.
// Keys enqueued before the controller starts are kept for it. The zero value has
// no delay. It is safe for concurrent use and serves one controller.
type Trigger struct {
	// Delay is how long each key waits in the queue, so that a burst of changes
	// causes one reconciliation. It must not change after the first use.
	Delay time.Duration

	// Ready, if not nil, returns when the controller may start to work. It must not change
	// after the first use.
	Ready func(ctx context.Context) error

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	pending map[types.NamespacedName]int // priorities, until the controller starts
}

var _ source.SyncingSource = &Trigger{}

// Start implements source.Source.
func (t *Trigger) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = queue
	for key, priority := range t.pending {
		t.add(key, priority)
	}
	t.pending = nil
	return nil
}

// WaitForSync implements source.SyncingSource.
func (t *Trigger) WaitForSync(ctx context.Context) error {
	if t.Ready == nil {
		return nil
	}
	return t.Ready(ctx)
}

// Enqueue requests a reconciliation of key with PriorityNormal.
func (t *Trigger) Enqueue(key types.NamespacedName) { t.EnqueueWithPriority(key, PriorityNormal) }

// EnqueueWithPriority requests a reconciliation of key. A key that is queued
// already keeps the higher of its priorities.
func (t *Trigger) EnqueueWithPriority(key types.NamespacedName, priority int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue != nil {
		t.add(key, priority)
		return
	}
	if t.pending == nil {
		t.pending = map[types.NamespacedName]int{}
	}
	if before, ok := t.pending[key]; !ok || before < priority {
		t.pending[key] = priority
	}
}

// Result returns the result of a reconciliation of key that asks for another one after a time, zero for
// never, with PriorityNormal. A controller ignores RequeueAfter with an error, so the time is passed to the
// queue before: a key that is queued already keeps the shorter of its waits.
func (t *Trigger) Result(key types.NamespacedName, again time.Duration, err error) (reconcile.Result, error) {
	if err == nil {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	t.mu.Lock()
	queue := t.queue
	t.mu.Unlock()
	switch {
	case again == 0:
	case queue == nil:
		t.Enqueue(key)
	default:
		queue.AddAfter(reconcile.Request{NamespacedName: key}, again)
	}
	return reconcile.Result{}, err
}

// add requires the lock.
func (t *Trigger) add(key types.NamespacedName, priority int) {
	request := reconcile.Request{NamespacedName: key}
	if queue, ok := t.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{After: t.Delay, Priority: &priority}, request)
		return
	}
	t.queue.AddAfter(request, t.Delay)
}
