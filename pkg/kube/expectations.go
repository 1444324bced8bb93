package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StaleAfter bounds how long the cache is waited for. It only matters when the
// cache never saw the object we wrote, because it was deleted by somebody else
// while the watch was interrupted.
const StaleAfter = 5 * time.Second

// Expectations remembers a controller's last write of each object until its
// cache has seen it, so that nothing is decided, and written again, from what was
// before. One serves objects of one kind. It is safe for concurrent use.
type Expectations struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]expectation
}

type expectation struct {
	resourceVersion string    // of the object after we wrote it, or
	gone            types.UID // of the object we deleted
	until           time.Time
}

// NewExpectations returns one that expects nothing.
func NewExpectations() *Expectations {
	return &Expectations{pending: map[types.NamespacedName]expectation{}}
}

// Wrote records that obj is what we wrote.
func (e *Expectations) Wrote(obj client.Object, now time.Time) {
	e.set(client.ObjectKeyFromObject(obj), expectation{resourceVersion: obj.GetResourceVersion(), until: now.Add(StaleAfter)})
}

// Deleted records that we deleted obj.
func (e *Expectations) Deleted(obj client.Object, now time.Time) {
	e.set(client.ObjectKeyFromObject(obj), expectation{gone: obj.GetUID(), until: now.Add(StaleAfter)})
}

func (e *Expectations) set(key types.NamespacedName, value expectation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending[key] = value
}

// Wait returns how long at most to wait for the cache, which now has the given
// object of that key (nil: none), to catch up with our last write: zero when it
// has.
func (e *Expectations) Wait(key types.NamespacedName, cached client.Object, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected, ok := e.pending[key]
	if !ok {
		return 0
	}
	if left := expected.until.Sub(now); left > 0 && !expected.metBy(cached) {
		return left
	}
	delete(e.pending, key)
	return 0
}

func (e expectation) metBy(cached client.Object) bool {
	if e.gone != "" {
		return cached == nil || cached.GetUID() != e.gone || cached.GetDeletionTimestamp() != nil
	}
	if cached == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), e.resourceVersion)
	return err != nil || order >= 0
}
