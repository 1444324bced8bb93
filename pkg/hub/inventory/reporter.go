package inventory

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// eventReason is the reason of the events that say which profiles are not
	// there.
	eventReason = "ProfilesWithheld"

	// eventAction is what the controller did, or did not.
	eventAction = "Publish"

	// eventInterval is the least time between two events about one object.
	eventInterval = 30 * time.Second
)

// Reporter says in events which profiles of a namespace are withheld and why.
// The request's name is the namespace.
type Reporter struct {
	reader   client.Reader // caches
	writer   client.Client
	clock    clock.PassiveClock
	outcomes *outcomes

	mu   sync.Mutex
	said map[string]map[subject]saying // by namespace
}

type saying struct {
	note note
	at   time.Time
}

func newReporter(reader client.Reader, writer client.Client, clock clock.PassiveClock, outcomes *outcomes) *Reporter {
	return &Reporter{reader: reader, writer: writer, clock: clock, outcomes: outcomes, said: map[string]map[subject]saying{}}
}

// Reconcile creates an event about each object of the namespace of which there
// is something else to say than last time.
func (r *Reporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var result reconcile.Result
	current := notes(r.outcomes.in(req.Name))
	for about, what := range current {
		wait, changed := r.due(req.Name, about, what)
		if !changed {
			continue
		}
		if wait > 0 {
			result.RequeueAfter = sooner(result.RequeueAfter, wait)
			continue
		}
		if err := r.say(ctx, req.Name, about, what); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.keepOnly(req.Name, current)
	return result, nil
}

// sooner returns the shorter of two waits, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// due tells whether there is something new to say about an object, and how long
// to keep it back.
func (r *Reporter) due(namespace string, about subject, what note) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, ok := r.said[namespace][about]
	if !ok {
		return 0, true
	}
	return before.at.Add(eventInterval).Sub(r.clock.Now()), before.note != what
}

func (r *Reporter) say(ctx context.Context, namespace string, about subject, what note) error {
	regarding, err := r.reference(ctx, namespace, about)
	if err != nil {
		return err
	}
	now := r.clock.Now()
	if regarding != nil {
		if err := emit(ctx, r.writer, *regarding, what, eventReason, now); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said[namespace] == nil {
		r.said[namespace] = map[subject]saying{}
	}
	r.said[namespace][about] = saying{note: what, at: now}
	return nil
}

// keepOnly forgets objects of which there is nothing more to say.
func (r *Reporter) keepOnly(namespace string, current map[subject]note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for about := range r.said[namespace] {
		if _, ok := current[about]; !ok {
			delete(r.said[namespace], about)
		}
	}
	if len(r.said[namespace]) == 0 {
		delete(r.said, namespace)
	}
}

// reference returns what an event is about, or nil if it is gone.
func (r *Reporter) reference(ctx context.Context, namespace string, about subject) (*corev1.ObjectReference, error) {
	key := types.NamespacedName{Namespace: namespace, Name: about.name}
	reference := corev1.ObjectReference{Namespace: namespace, Name: about.name}
	var obj client.Object
	switch about.kind {
	case aboutPlacement:
		obj = &clusterv1beta1.Placement{}
		reference.APIVersion, reference.Kind = clusterv1beta1.GroupVersion.String(), "Placement"
	case aboutProfile:
		obj = &inventoryv1alpha1.ClusterProfile{}
		reference.APIVersion, reference.Kind = inventoryv1alpha1.GroupVersion.String(), "ClusterProfile"
	default:
		obj = &clusterv1beta2.ManagedClusterSetBinding{}
		reference.APIVersion, reference.Kind = clusterv1beta2.GroupVersion.String(), "ManagedClusterSetBinding"
	}
	found, err := get(ctx, r.reader, key, obj)
	if err != nil || found == nil {
		return nil, err
	}
	reference.UID = found.GetUID()
	return &reference, nil
}

// emit creates an event. In a namespace that is going none can be created, and
// nobody will look.
func emit(ctx context.Context, writer client.Client, regarding corev1.ObjectReference, what note, reason string, now time.Time) error {
	event := kube.NewEvent(regarding, what.eventType, reason, eventAction, what.text, ControllerName, ControllerName, now)
	err := writer.Create(ctx, event)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("creating event: %w", err)
}
