package notices

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// Interval is the least time between two events about one object for one reason.
	Interval = 30 * time.Second

	// scopesPerSecond bounds in how many scopes of a kind a Reporter creates events, after
	// scopesAtOnce.
	scopesPerSecond = 5
	scopesAtOnce    = 20
)

// Reporter creates the events that notices ask for. It is safe for concurrent use, as long as
// reports of one scope do not overlap.
type Reporter struct {
	reader     client.Reader // caches
	writer     client.Client
	clock      clock.PassiveClock
	controller string
	action     string
	scopes     kube.Memory[types.NamespacedName, scope]

	// Many clusters must not delay the events of namespaces, so the rates are their own.
	inNamespaces, onClusters *rate.Limiter
}

// scope is what a Reporter remembers of a scope.
type scope struct {
	lastEvents map[topic]lastEvent

	// turn is when events may be created; zero if none are due.
	turn time.Time
}

// NewReporter returns a Reporter whose events name the controller, and the action that it took
// or refrained from.
func NewReporter(
	reader client.Reader, writer client.Client, clock clock.PassiveClock, controller, action string,
) *Reporter {
	return &Reporter{
		reader: reader, writer: writer, clock: clock, controller: controller, action: action,
		inNamespaces: rate.NewLimiter(scopesPerSecond, scopesAtOnce),
		onClusters:   rate.NewLimiter(scopesPerSecond, scopesAtOnce),
	}
}

// Report creates the events that are due in a scope: all that the caller reports on together,
// in its namespace or, without one, about a cluster. current is everything to report, at most
// one notice for each subject and reason. It returns when to report again even if nothing
// changes; zero means never.
func (r *Reporter) Report(ctx context.Context, of types.NamespacedName, current []Notice) (time.Duration, error) {
	now := r.clock.Now()
	s, _ := r.scopes.Load(of)
	d := decide(s.lastEvents, current, now)
	s.lastEvents = d.lastEvents
	defer r.scopes.Update(of, func(scope, bool) (scope, bool) { return s, len(s.lastEvents) > 0 || !s.turn.IsZero() })
	if len(d.due) > 0 && s.turn.IsZero() {
		limiter := r.inNamespaces
		if of.Namespace == "" {
			limiter = r.onClusters
		}
		s.turn = now.Add(limiter.ReserveN(now, 1).DelayFrom(now))
	}
	// A turn that still lies ahead is kept even if nothing is due, for what may be due by then: turns cannot
	// be given back.
	if wait := s.turn.Sub(now); wait > 0 {
		return kube.Sooner(d.again, wait), nil
	}
	for _, next := range d.due {
		last, err := r.emit(ctx, of.Namespace, next)
		if kube.IsRefusal(err) { // perhaps only of this one, because of a text that others choose
			log.FromContext(ctx).Info("The event was refused, and is tried again when it would be repeated",
				"reason", next.notice.Reason, "about", next.notice.Subject.Name, "error", err.Error())
		} else if err != nil {
			return 0, err // the next attempt needs no other turn
		}
		s.lastEvents[next.notice.topic()] = last
		d.again = kube.Sooner(d.again, last.repeat.Sub(now))
	}
	s.turn = time.Time{}
	return d.again, nil
}

// emit creates the event of a notice, unless its object is gone. A stable event that exists
// already says the same.
func (r *Reporter) emit(ctx context.Context, namespace string, next due) (lastEvent, error) {
	now, notice := r.clock.Now(), next.notice
	last := lastEvent{notice: notice, at: now, repeat: now.Add(kube.EventPeriod)}
	regarding, err := r.reference(ctx, namespace, notice.Subject)
	if err != nil || regarding == nil {
		return last, err
	}
	event := kube.NewEvent(
		*regarding, notice.Type, notice.Reason, r.action, notice.Text, r.controller, r.controller, now)
	number, end := kube.PeriodOfEvent(event, now)
	if next.stable {
		kube.SetEventName(event, number, event.Note)
	}
	err = kube.CreateEvent(ctx, r.writer, event)
	if next.stable && apierrors.IsAlreadyExists(err) {
		last.repeat = end
		return last, nil
	}
	return last, err
}

// reference returns what an event is about, or nil if it is gone.
func (r *Reporter) reference(ctx context.Context, namespace string, about Subject) (*corev1.ObjectReference, error) {
	key := types.NamespacedName{Namespace: namespace, Name: about.Name}
	var obj client.Object
	switch about.Kind {
	case Placement:
		obj = &clusterv1beta1.Placement{}
	case Profile:
		obj = &inventoryv1alpha1.ClusterProfile{}
	case Cluster:
		obj = &clusterv1.ManagedCluster{}
	default:
		obj = &clusterv1beta2.ManagedClusterSetBinding{}
	}
	found, err := kube.Get(ctx, r.reader, key, obj)
	if kube.IsUncached(err) || err == nil && found == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kind, err := r.writer.GroupVersionKindFor(obj)
	version, name := kind.ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: version, Kind: name, Namespace: namespace, Name: about.Name, UID: found.GetUID(),
	}, err
}
