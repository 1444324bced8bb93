package access

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// follower keeps in memory the objects of one kind that its options select.
//
// It is no informer of the manager's cache, because of what is to happen while it
// cannot be filled: a read of such an informer waits, and the manager's start
// with it, while here the answer is that nothing is known, and why.
type follower struct {
	informer toolscache.SharedIndexInformer

	mu  sync.Mutex
	err error
}

// newFollower follows objects like obj, which list lists. changed is called with
// an object before and after; with two times nil when following failed. What was
// there at the start is told as a whole, by run.
func newFollower(c client.WithWatch, obj client.Object, list client.ObjectList, changed func(before, after client.Object), opts ...client.ListOption) *follower {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return (&client.ListOptions{Raw: &raw}).ApplyOptions(opts)
	}
	private := func(ctx context.Context) context.Context {
		if _, isSecret := obj.(*corev1.Secret); isSecret {
			return kube.WithoutBodies(ctx)
		}
		return ctx
	}
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into, _ := list.DeepCopyObject().(client.ObjectList)
			err := c.List(private(ctx), into, options(raw))
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			into, _ := list.DeepCopyObject().(client.ObjectList)
			return c.Watch(private(ctx), into, options(raw))
		},
	}
	f := &follower{informer: toolscache.NewSharedIndexInformer(source, obj, 0, toolscache.Indexers{})}
	// Neither fails before the informer runs.
	_ = f.informer.SetTransform(trim)
	_ = f.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		// A right that is missing, as in a namespace that is not there, may be so for
		// ever: once said is enough.
		if before := f.fail(err); !isRefusal(before) || !isRefusal(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		}
		changed(nil, nil)
	})
	_, _ = f.informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				changed(nil, objectOf(obj))
			}
		},
		UpdateFunc: func(before, after any) { changed(objectOf(before), objectOf(after)) },
		DeleteFunc: func(obj any) { changed(objectOf(obj), nil) },
	})
	return f
}

// run follows until the context ends, and says when everything that there was
// at the start is known.
func (f *follower) run(ctx context.Context, synced func()) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
			synced()
		}
	})
	f.informer.RunWithContext(ctx)
}

// notRead is why objects are not known at the start, which is not worth a word.
const notRead = "has not been read yet"

// unknown says why the objects are not known; empty when they are. The follower
// that does not exist knows that there is nothing.
func (f *follower) unknown() string {
	if f == nil || f.informer.HasSynced() {
		return ""
	}
	switch err := f.failure(); {
	case err == nil:
		return notRead
	case isRefusal(err):
		return "may not be read by the manager: its rights are missing"
	default:
		return "cannot be read; the manager's log says why"
	}
}

// settled tells whether the objects are known, or will not be unless somebody
// does something.
func (f *follower) settled() bool {
	return f == nil || f.informer.HasSynced() || isRefusal(f.failure()) || isUnserved(f.failure())
}

// fail records why following failed, and returns why it did before.
func (f *follower) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.err
	f.err = err
	return before
}

func (f *follower) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// objects returns what is known, in no order.
func (f *follower) objects() []client.Object {
	if f == nil {
		return nil
	}
	var list []client.Object
	for _, item := range f.informer.GetStore().List() {
		if obj := objectOf(item); obj != nil {
			list = append(list, obj)
		}
	}
	return list
}

// get returns the object of a key, "namespace/name" or "name"; nil if there is
// none.
func (f *follower) get(key string) client.Object {
	if f == nil {
		return nil
	}
	item, exists, err := f.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return nil
	}
	return objectOf(item)
}

func objectOf(item any) client.Object {
	if gone, ok := item.(toolscache.DeletedFinalStateUnknown); ok {
		item = gone.Obj
	}
	obj, _ := item.(client.Object)
	return obj
}

func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
