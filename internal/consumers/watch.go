package consumers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch validates every version of the profiles of a namespace, including existing ones.
type Watch struct {
	watcher watch.Interface
	ended   chan struct{}

	mu       sync.Mutex
	stopped  bool
	last     map[types.NamespacedName]*Profile
	versions map[string]bool
	problems []error
}

// Follow watches until Stop or the end of the context. A deleted profile is not a problem
// by itself; one that is recreated is.
func Follow(ctx context.Context, c client.WithWatch, namespace string) (*Watch, error) {
	list := &inventoryv1alpha1.ClusterProfileList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	w := &Watch{ended: make(chan struct{}), last: map[types.NamespacedName]*Profile{}, versions: map[string]bool{}}
	for i := range list.Items {
		w.see(&list.Items[i])
	}
	for _, problem := range ValidateTogether(list.Items) {
		w.problems = append(w.problems, errors.New(problem))
	}
	var err error
	w.watcher, err = c.Watch(ctx, &inventoryv1alpha1.ClusterProfileList{}, &client.ListOptions{
		Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	if err != nil {
		return nil, err
	}
	go w.follow()
	return w, nil
}

func (w *Watch) follow() {
	defer close(w.ended)
	for event := range w.watcher.ResultChan() {
		if profile, ok := event.Object.(*Profile); !ok {
			w.fail(fmt.Errorf("the watch failed: %v", event.Object))
		} else if event.Type != watch.Deleted {
			w.see(profile)
		}
	}
	w.fail(errors.New("the watch ended"))
}

// fail records what happened to the watch, unless it was stopped.
func (w *Watch) fail(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.problems = append(w.problems, why)
	}
}

func (w *Watch) see(profile *Profile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := types.NamespacedName{Namespace: profile.Namespace, Name: profile.Name}
	for _, problem := range Validate(w.last[key], profile, time.Now()) {
		w.problems = append(w.problems, fmt.Errorf("%s at version %s: %s", key, profile.ResourceVersion, problem))
	}
	w.last[key] = profile
	w.versions[profile.ResourceVersion] = true
}

// Saw reports whether a version has been validated.
func (w *Watch) Saw(profile *Profile) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions[profile.ResourceVersion]
}

// Problems are those found so far, or nil.
func (w *Watch) Problems() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.problems...)
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.watcher.Stop()
	<-w.ended
}
