package kube

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StaleAfter bounds the wait until the cache shows what this process wrote. It only matters when the cache never
// sees the object we wrote, because another client deleted it while the watch was
// interrupted.
const StaleAfter = 5 * time.Second

// longestStale bounds the wait for a cache that still has an object of which the API server has said several times
// that it is gone. A reflector waits about as long before it lists again.
const longestStale = time.Minute

// Expectations remembers, until a controller's cache shows them, the controller's last write of
// each object and the write of another client with which it conflicted, so that the controller
// does not decide, and write again, from a stale cache. Each instance serves objects of one
// kind. The zero value has none and is safe for concurrent use.
type Expectations struct {
	pending Memory[types.NamespacedName, expectation]
}

type expectation struct {
	resourceVersion string    // of the object after our write; empty after a deletion
	written         types.UID // of the object we wrote
	gone            types.UID // of the object that we last deleted or found gone
	outdated        string    // a resource version that another client's write has replaced
	until           time.Time
	patience        time.Duration // how long to wait after an object was found gone; 0 after a write of our own
}

// Wrote records a write; obj is the object the API server returned.
func (e *Expectations) Wrote(obj client.Object, now time.Time) {
	e.set(client.ObjectKeyFromObject(obj), func(before expectation) expectation {
		return expectation{
			resourceVersion: obj.GetResourceVersion(), written: obj.GetUID(), gone: before.gone, until: now.Add(StaleAfter),
		}
	})
}

// Deleted records that we deleted obj.
func (e *Expectations) Deleted(obj client.Object, now time.Time) {
	e.set(client.ObjectKeyFromObject(obj), func(expectation) expectation {
		return expectation{gone: obj.GetUID(), until: now.Add(StaleAfter)}
	})
}

// Gone records that a write of obj was refused because it is gone. Each time that this happens
// again, the cache still has the object, and the wait is twice the last one, up to a minute. So it
// is for controllers whose keys have one object each: a wait for a missing event delays nothing else.
func (e *Expectations) Gone(obj client.Object, now time.Time) {
	e.set(client.ObjectKeyFromObject(obj), func(before expectation) expectation {
		patience := StaleAfter
		if before.gone == obj.GetUID() {
			patience = min(max(patience, 2*before.patience), longestStale)
		}
		return expectation{gone: obj.GetUID(), until: now.Add(patience), patience: patience}
	})
}

// Conflicted records that a write of obj was refused because another client had changed the
// object. The event of that change is on its way.
func (e *Expectations) Conflicted(obj client.Object, now time.Time) {
	e.set(client.ObjectKeyFromObject(obj), func(before expectation) expectation {
		before.outdated, before.until = obj.GetResourceVersion(), now.Add(StaleAfter)
		return before
	})
}

func (e *Expectations) set(key types.NamespacedName, change func(expectation) expectation) {
	e.pending.Update(key, func(before expectation, _ bool) (expectation, bool) { return change(before), true })
}

// IsDeleted reports whether we deleted obj or found it gone. The cache may still have it.
func (e *Expectations) IsDeleted(obj client.Object) bool {
	expected, _ := e.pending.Load(client.ObjectKeyFromObject(obj))
	return expected.gone != "" && expected.gone == obj.GetUID()
}

// IsAwaited reports whether we wrote the object of a key a short while ago: a cache that
// lacks it may only lag.
func (e *Expectations) IsAwaited(key types.NamespacedName, now time.Time) bool {
	expected, _ := e.pending.Load(key)
	return expected.resourceVersion != "" && now.Before(expected.until)
}

// Vanished records that the cache has lost obj, and reports whether that is the object we
// wrote last, which is then no longer awaited.
func (e *Expectations) Vanished(obj client.Object) (was bool) {
	key := client.ObjectKeyFromObject(obj)
	e.pending.Update(key, func(expected expectation, known bool) (expectation, bool) {
		if was = expected.resourceVersion != "" && expected.written == obj.GetUID(); was {
			expected.resourceVersion, expected.written = "", ""
		}
		return expected, known
	})
	return was
}

// Forget drops what was recorded for a key.
func (e *Expectations) Forget(key types.NamespacedName) { e.pending.Forget(key) }

// Wait returns how much longer to wait for the cache to show our last write of key, and the
// write with which ours conflicted. It is zero if the cache shows them or the wait is over.
// cached is what the cache has now, nil if it has no object of that key.
func (e *Expectations) Wait(key types.NamespacedName, cached client.Object, now time.Time) (left time.Duration) {
	e.pending.Update(key, func(expected expectation, known bool) (expectation, bool) {
		if !known || expected.metBy(cached) {
			return expected, false
		}
		left = max(0, expected.until.Sub(now))
		return expected, left > 0 || expected.patience > 0 && cached != nil && cached.GetUID() == expected.gone
	})
	return left
}

func (e expectation) metBy(cached client.Object) bool {
	if e.outdated != "" && cached != nil && cached.GetResourceVersion() == e.outdated {
		return false
	}
	if e.resourceVersion == "" {
		return cached == nil || cached.GetUID() != e.gone || cached.GetDeletionTimestamp() != nil
	}
	if cached == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), e.resourceVersion)
	return err != nil || order >= 0
}
