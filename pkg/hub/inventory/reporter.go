package inventory

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// eventReason is the reason of the events that say which profiles are missing.
	eventReason = "ProfilesWithheld"

	// eventAction is what the controller did or refrained from.
	eventAction = "Publish"

	// eventInterval is the least time between two events about one object.
	eventInterval = 30 * time.Second
)

// Reporter creates the events that say which profiles of a namespace are withheld
// and why. The request's name is the namespace.
type Reporter struct {
	reader   client.Reader // caches
	writer   client.Client
	clock    clock.PassiveClock
	outcomes *outcomes

	mu         sync.Mutex
	lastEvents map[string]map[subject]lastEvent // by namespace
}

type lastEvent struct {
	notice notice
	at     time.Time
}

func newReporter(reader client.Reader, writer client.Client, clock clock.PassiveClock, outcomes *outcomes) *Reporter {
	return &Reporter{
		reader: reader, writer: writer, clock: clock, outcomes: outcomes,
		lastEvents: map[string]map[subject]lastEvent{},
	}
}

// Reconcile creates an event about each object of the namespace whose last event is out of
// date.
func (r *Reporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var result reconcile.Result
	current := desiredNotices(r.outcomes.in(req.Name))
	for about, what := range current {
		wait, changed := r.due(req.Name, about, what)
		if !changed {
			continue
		}
		if wait > 0 {
			result.RequeueAfter = kube.Sooner(result.RequeueAfter, wait)
			continue
		}
		if err := r.emit(ctx, req.Name, about, what); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.keepOnly(req.Name, current)
	return result, nil
}

// due tells whether a notice differs from the last event about an object, and how
// long to hold it back.
func (r *Reporter) due(namespace string, about subject, what notice) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.lastEvents[namespace][about]
	if !ok {
		return 0, true
	}
	return last.at.Add(eventInterval).Sub(r.clock.Now()), last.notice != what
}

func (r *Reporter) emit(ctx context.Context, namespace string, about subject, what notice) error {
	regarding, err := r.reference(ctx, namespace, about)
	if err != nil {
		return err
	}
	now := r.clock.Now()
	if regarding != nil {
		event := kube.NewEvent(*regarding, what.eventType, eventReason, eventAction, what.text,
			ControllerName, ControllerName, now)
		if err := kube.CreateEvent(ctx, r.writer, event); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastEvents[namespace] == nil {
		r.lastEvents[namespace] = map[subject]lastEvent{}
	}
	r.lastEvents[namespace][about] = lastEvent{notice: what, at: now}
	return nil
}

// keepOnly forgets objects about which there is nothing more to say.
func (r *Reporter) keepOnly(namespace string, current map[subject]notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for about := range r.lastEvents[namespace] {
		if _, ok := current[about]; !ok {
			delete(r.lastEvents[namespace], about)
		}
	}
	if len(r.lastEvents[namespace]) == 0 {
		delete(r.lastEvents, namespace)
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
	found, err := kube.Get(ctx, r.reader, key, obj)
	if err != nil || found == nil {
		return nil, err
	}
	reference.UID = found.GetUID()
	return &reference, nil
}
