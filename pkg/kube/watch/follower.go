package watch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Follow configures a Follower.
type Follow struct {
	// Object is of the followed kind, List its list. Use Partial and PartialList to follow
	// metadata alone.
	Object client.Object
	List   client.ObjectList

	// Select narrows the followed objects.
	Select []client.ListOption

	// Trim cuts each object down before it is kept; nil keeps it whole.
	Trim toolscache.TransformFunc

	// Changed is called for every object that is added (before is nil), updated or deleted
	// (after is nil), one call at a time.
	Changed func(before, after client.Object)

	// SkipInitial skips these calls for objects that exist when following begins.
	SkipInitial bool

	// Failed, if not nil, is called when listing or watching failed. The Follower retries
	// at intervals of up to half a minute.
	Failed func(error)

	// Synced, if not nil, is called once: when the initial objects are known and Changed
	// has returned for all of them.
	Synced func()
}

// NewWatchClient returns a client for followers that shares the connections of a
// manager and reads no cache.
func NewWatchClient(mgr cluster.Cluster) (client.WithWatch, error) {
	c, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making a client that watches: %w", err)
	}
	return c, nil
}

// Follower keeps the objects of one kind that its configuration selects in memory.
//
// Unlike an informer of the manager's cache, it never makes callers wait: until its objects
// are known, it reports them as unknown, and why. So it suits objects that the manager may
// lack the right to read. A nil Follower knows that there are no objects.
type Follower struct {
	informer     toolscache.SharedIndexInformer
	synced       func()
	handlersDone toolscache.InformerSynced
	failed       atomic.Pointer[error] // why following failed last
}

// NewFollower returns a Follower that follows nothing before Run.
func NewFollower(c client.WithWatch, follow Follow) *Follower {
	f := &Follower{
		informer: toolscache.NewSharedIndexInformer(listWatch(c, follow), follow.Object, 0, toolscache.Indexers{}),
		synced:   follow.Synced,
	}
	// None of these fails before the informer runs.
	if follow.Trim != nil {
		_ = f.informer.SetTransform(follow.Trim)
	}
	_ = f.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		// A missing right may stay missing forever, so it is logged once.
		if before := ptr.Deref(f.failed.Swap(&err), nil); !isDenied(before) || !isDenied(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		}
		if follow.Failed != nil {
			follow.Failed(err)
		}
	})
	handled, _ := f.informer.AddEventHandler(kube.OnEvent(func(before, after client.Object, initial bool) {
		if !initial || !follow.SkipInitial {
			follow.Changed(before, after)
		}
	}))
	f.handlersDone = handled.HasSynced
	return f
}

func listWatch(c client.WithWatch, follow Follow) *toolscache.ListWatch {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return (&client.ListOptions{Raw: &raw}).ApplyOptions(follow.Select)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into, _ := follow.List.DeepCopyObject().(client.ObjectList)
			err := c.List(kube.WithoutBodies(ctx), into, options(raw)) // there may be Secrets, or copies of them
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			into, _ := follow.List.DeepCopyObject().(client.ObjectList)
			return c.Watch(kube.WithoutBodies(ctx), into, options(raw))
		},
	}
}

// Run follows until the context ends, and returns when all calls have returned.
func (f *Follower) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	if f.synced != nil {
		group.Go(func() {
			if toolscache.WaitForCacheSync(ctx.Done(), f.handlersDone) {
				f.synced()
			}
		})
	}
	f.informer.RunWithContext(ctx)
}

// Transient reasons why something is unknown: they resolve by themselves within moments.
const (
	// NotReadYet is what Unknown returns at the start, before anything failed.
	NotReadYet = "has not been read yet"

	// NotFoundYet describes an object that was missing from the start, until Held.Settle
	// says that its absence counts.
	NotFoundYet = "was not found, which may be only for a moment"
)

// IsTransient reports whether a reason why something is unknown is one of these.
func IsTransient(unknown string) bool { return unknown == NotReadYet || unknown == NotFoundYet }

// Unknown returns, as the end of a sentence about the objects, why they are unknown; it is
// empty when they are known.
func (f *Follower) Unknown() string {
	if f == nil || f.informer.HasSynced() {
		return ""
	}
	switch err := f.failure(); {
	case err == nil:
		return NotReadYet
	case isDenied(err):
		return "may not be read by the manager: its rights are missing"
	default:
		return "cannot be read; the manager's log says why"
	}
}

// Stable reports whether the objects are known, or remain unknown until a user acts.
func (f *Follower) Stable() bool {
	if f == nil || f.informer.HasSynced() {
		return true
	}
	err := f.failure()
	return isDenied(err) || apierrors.IsNotFound(err)
}

func (f *Follower) failure() error { return ptr.Deref(f.failed.Load(), nil) }

// Objects returns the known objects, in no order. They must not be changed.
func (f *Follower) Objects() []client.Object {
	if f == nil {
		return nil
	}
	var list []client.Object
	for _, item := range f.informer.GetStore().List() {
		if obj, ok := item.(client.Object); ok {
			list = append(list, obj)
		}
	}
	return list
}

// Get returns the object of a key, "namespace/name" or "name", or nil if none is
// known. It must not be changed.
func (f *Follower) Get(key string) client.Object {
	if f == nil {
		return nil
	}
	item, exists, err := f.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return nil
	}
	obj, _ := item.(client.Object)
	return obj
}

func isDenied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}
