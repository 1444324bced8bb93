package apitest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// World is the content of an API server as one test changes and observes it: an uncached
// client of the administrator, and shorthands that end the test when they fail. Packages
// embed it in their own world type.
type World struct {
	client.Client

	// T is the test, or the subtest for which In returned this world.
	T testing.TB

	// Patience bounds every Eventually.
	Patience time.Duration

	suffix string
}

// worlds counts the worlds of this process, and so makes their names unique.
var worlds atomic.Int64

// NewWorld returns a world on the server of a configuration.
func NewWorld(tb testing.TB, cfg *rest.Config, scheme *runtime.Scheme) *World {
	tb.Helper()
	return &World{
		Client:   NewClient(tb, cfg, scheme),
		T:        tb,
		Patience: Patience,
		suffix:   fmt.Sprintf("-%d", worlds.Add(1)),
	}
}

// NewClient returns an uncached client.
func NewClient(tb testing.TB, cfg *rest.Config, scheme *runtime.Scheme) client.Client {
	tb.Helper()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	Must(tb, err)
	return c
}

// In returns the same world for a subtest.
func (w *World) In(tb testing.TB) *World {
	sub := *w
	sub.T = tb
	return &sub
}

// Name returns a cluster-wide name that no other world of the process uses.
func (w *World) Name(base string) string { return base + w.suffix }

// MustCreate creates objects. They stay when the test ends; see CleanUp.
func (w *World) MustCreate(objs ...client.Object) {
	w.T.Helper()
	for _, obj := range objs {
		if err := w.Create(w.ctx(), obj); err != nil {
			w.T.Fatalf("create %s: %v", w.identify(obj), err)
		}
	}
}

// MustGet reads an object again.
func (w *World) MustGet(obj client.Object) {
	w.T.Helper()
	if !w.Find(obj) {
		w.T.Fatalf("%s does not exist", w.identify(obj))
	}
}

// Find reads an object again and reports whether it exists.
func (w *World) Find(obj client.Object) bool {
	w.T.Helper()
	err := w.Get(w.ctx(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		w.T.Fatalf("get %s: %v", w.identify(obj), err)
	}
	return err == nil
}

// MustList lists objects.
func (w *World) MustList(list client.ObjectList, opts ...client.ListOption) {
	w.T.Helper()
	if err := w.List(w.ctx(), list, opts...); err != nil {
		w.T.Fatalf("list %T: %v", list, err)
	}
}

// MustDelete deletes objects, which must exist.
func (w *World) MustDelete(objs ...client.Object) {
	w.T.Helper()
	for _, obj := range objs {
		if err := w.Delete(w.ctx(), obj); err != nil {
			w.T.Fatalf("delete %s: %v", w.identify(obj), err)
		}
	}
}

// MustMerge sends a JSON merge patch given as text.
func (w *World) MustMerge(obj client.Object, patch string) {
	w.T.Helper()
	if err := w.Patch(w.ctx(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.T.Fatalf("patch %s: %v", w.identify(obj), err)
	}
}

// Edit reads an object, changes it, and patches the difference: what others write
// meanwhile stays. The world may be one that embeds a World.
func Edit[T client.Object](in interface{ world() *World }, obj T, change func(T)) {
	w := in.world()
	w.T.Helper()
	edit(w, obj, change, func(ctx context.Context, patch client.Patch) error { return w.Patch(ctx, obj, patch) })
}

// EditStatus is Edit for the status.
func EditStatus[T client.Object](in interface{ world() *World }, obj T, change func(T)) {
	w := in.world()
	w.T.Helper()
	edit(w, obj, change, func(ctx context.Context, patch client.Patch) error { return w.Status().Patch(ctx, obj, patch) })
}

func edit[T client.Object](w *World, obj T, change func(T), write func(context.Context, client.Patch) error) {
	w.T.Helper()
	w.MustGet(obj)
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	if err := write(w.ctx(), client.MergeFrom(before)); err != nil {
		w.T.Fatalf("edit %s: %v", w.identify(obj), err)
	}
}

func (w *World) world() *World { return w }

// ctx can also be used in a Cleanup, where the test's own context has ended.
func (w *World) ctx() context.Context { return context.WithoutCancel(w.T.Context()) }

// Namespace creates a namespace with a name no other test has.
func (w *World) Namespace(prefix string, annotations map[string]string) string {
	w.T.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-", Annotations: annotations}}
	w.MustCreate(ns)
	return ns.Name
}

// MustCreateIn creates a namespace of the given name, and objects in it.
func (w *World) MustCreateIn(namespace string, objs ...client.Object) {
	w.T.Helper()
	w.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, obj := range objs {
		obj.SetNamespace(namespace)
		w.MustCreate(obj)
	}
}

// CleanUp deletes the objects when the test ends, regardless of their finalizers.
func (w *World) CleanUp(objs ...client.Object) {
	w.T.Cleanup(func() {
		w.T.Helper()
		for _, obj := range objs {
			// As it is now: finalizers may have been added since it was created.
			obj = obj.DeepCopyObject().(client.Object)
			err := w.Get(w.ctx(), client.ObjectKeyFromObject(obj), obj)
			if err == nil {
				w.Remove(obj)
			} else if client.IgnoreNotFound(err) != nil {
				w.T.Errorf("remove %s: %v", w.identify(obj), err)
			}
		}
	})
}

// Clear deletes everything the lists return, regardless of finalizers. Kinds that are not
// served are skipped. It may be called from a Cleanup.
func (w *World) Clear(list client.ObjectList, opts ...client.ListOption) {
	w.T.Helper()
	err := w.List(w.ctx(), list, opts...)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		w.T.Errorf("clear %T: %v", list, err)
		return
	}
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		w.Remove(item.(client.Object))
		return nil
	})
	if err != nil {
		w.T.Errorf("clear %T: %v", list, err)
	}
}

// Remove deletes an object, which may hold finalizers or be gone already. It may be
// called from a Cleanup.
func (w *World) Remove(obj client.Object) {
	w.T.Helper()
	obj = obj.DeepCopyObject().(client.Object)
	err := w.Delete(w.ctx(), obj)
	if err == nil && len(obj.GetFinalizers()) > 0 {
		err = w.Patch(w.ctx(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	if client.IgnoreNotFound(err) != nil {
		w.T.Errorf("remove %s: %v", w.identify(obj), err)
	}
}

// Eventually waits until check returns "", which otherwise describes what it
// found; see the function of that name.
func (w *World) Eventually(what string, check func() string) {
	w.T.Helper()
	Eventually(w.T, w.Patience, what, check)
}

// EventuallyExists waits until an object exists, and reads it.
func (w *World) EventuallyExists(obj client.Object) {
	w.T.Helper()
	w.Eventually(w.identify(obj)+" exists", func() string {
		if !w.Find(obj) {
			return "it does not exist"
		}
		return ""
	})
}

// EventuallyGone waits until an object does not exist.
func (w *World) EventuallyGone(obj client.Object) {
	w.T.Helper()
	w.Eventually(w.identify(obj)+" is gone", func() string {
		if found := obj.DeepCopyObject().(client.Object); w.Find(found) {
			return fmt.Sprintf("it exists, deleted at %v, finalizers %v", found.GetDeletionTimestamp(), found.GetFinalizers())
		}
		return ""
	})
}

// Stays ends the test if check returns anything but "" while the duration lasts.
func (w *World) Stays(duration time.Duration, what string, check func() string) {
	w.T.Helper()
	Stays(w.T, duration, what, check)
}

// EventuallyAllowed waits until the API server allows or refuses the attributes to a user:
// it learns of roles a moment after they are written.
func (w *World) EventuallyAllowed(user *rest.Config, want bool, attributes authorizationv1.ResourceAttributes) {
	w.T.Helper()
	c := NewClient(w.T, user, scheme.Scheme)
	w.Eventually(fmt.Sprintf("user may %+v: %t", attributes, want), func() string {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
		}
		if err := c.Create(w.ctx(), review); err != nil {
			return err.Error()
		}
		if review.Status.Allowed != want {
			return fmt.Sprintf("allowed: %t %s", review.Status.Allowed, review.Status.Reason)
		}
		return ""
	})
}

// File writes a file that lives as long as the test and returns its path.
func (w *World) File(name string, content []byte) string {
	w.T.Helper()
	return File(w.T, name, content)
}

// File writes a file that lives as long as the test and returns its path.
func File(tb testing.TB, name string, content []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	Must(tb, os.WriteFile(path, content, 0o600))
	return path
}

// identify names an object for a message.
func (w *World) identify(obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := w.GroupVersionKindFor(obj); err == nil {
		kind = gvk.Kind
	}
	name := obj.GetName()
	if name == "" {
		name = obj.GetGenerateName() + "*"
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}
