package credentials

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Priorities in a queue. What has copies already, so that something may have to
// be taken back, goes before the many that are only to be made.
const (
	priorityMake = handler.LowPriority
	priorityKeep = 0
)

// feed is a source of a controller's requests that others fill by name. What
// comes before the controller starts is kept for it.
type feed struct {
	delay time.Duration

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	pending map[types.NamespacedName]int
}

func newFeed(delay time.Duration) *feed {
	return &feed{delay: delay, pending: map[types.NamespacedName]int{}}
}

// Start implements source.Source.
func (f *feed) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = queue
	for key, priority := range f.pending {
		f.put(key, priority)
	}
	f.pending = nil
	return nil
}

// add asks for a key to be looked at.
func (f *feed) add(key types.NamespacedName, priority int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue != nil {
		f.put(key, priority)
		return
	}
	if before, ok := f.pending[key]; !ok || before < priority {
		f.pending[key] = priority
	}
}

func (f *feed) put(key types.NamespacedName, priority int) {
	request := reconcile.Request{NamespacedName: key}
	if queue, ok := f.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{After: f.delay, Priority: &priority}, request)
		return
	}
	f.queue.AddAfter(request, f.delay)
}
