package report

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// EventsControllerName names the controller of events in logs and metrics.
const EventsControllerName = "spoke.events"

const (
	eventAction = "Publish"

	// eventSource names the agent as the owners of properties know it.
	eventSource = contract.AddonName + "-agent"

	// eventTimeout limits one request.
	eventTimeout = 15 * time.Second

	// After an event was refused, the agent creates none for this time. It may lack the right
	// as long as the spoke has the manifests of revision 1.
	pauseForbidden = 10 * time.Minute
	pauseFailed    = time.Minute
)

// AddEvents adds the controller of events to a manager of the spoke, which serves properties. The
// history is that of the process. The manager must be stopped when the situation changes.
func AddEvents(mgr manager.Manager, situation Situation, history *EventHistory) error {
	c, err := newController(EventsControllerName, mgr, &EventReconciler{
		situation: situation,
		history:   history,
		clock:     clock.RealClock{},
		spoke:     mgr.GetCache(),
		writer:    mgr.GetClient(),
	})
	if err != nil {
		return err
	}
	return watchSpoke(c, mgr, situation.API, enqueueAfterCollecting(types.NamespacedName{Name: "properties"}))
}

// EventReconciler creates events about properties that are not published, for their owners.
type EventReconciler struct {
	situation Situation
	history   *EventHistory
	clock     clock.PassiveClock

	// missing and outdated are since when claims have been so.
	missing, outdated awaited

	spoke  client.Reader
	writer client.Client
}

// Reconcile observes properties and claims, and creates the events that are due.
func (r *EventReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	seen := observed{Situation: r.situation}
	if err := seen.read(ctx, r.spoke); err != nil {
		return reconcile.Result{}, err
	}
	now := r.clock.Now()
	outdated := outdatedClaims(seen)
	early, again := r.outdated.early(outdated, now)
	for _, name := range early {
		delete(outdated, name)
	}
	again = kube.Sooner(again, r.missing.count(&seen, now))
	due, next := r.history.due(desiredNotices(seen, outdated), now)
	again = kube.Sooner(again, next)
	for _, n := range due {
		allowed, wait := r.history.allow(now)
		if !allowed {
			again = kube.Sooner(again, wait)
			break
		}
		again = kube.Sooner(again, r.emit(ctx, n, eventNote(n, seen), now))
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// emit creates an event and returns how long until the next one for the notice. A refused event
// is no error: everything else that the agent does continues.
func (r *EventReconciler) emit(ctx context.Context, n notice, note string, now time.Time) time.Duration {
	event := r.event(n, note, now)
	number, end := kube.PeriodOfEvent(event, now)
	kube.SetEventName(event, number, "")
	creating, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	err := kube.CreateEvent(creating, r.writer, event)
	switch {
	case ctx.Err() != nil: // the session ends
		return 0
	case err == nil || apierrors.IsAlreadyExists(err):
		r.history.failing = false
	case !r.history.failing:
		r.history.failing = true
		log.FromContext(ctx).Info("Cannot tell the owners of properties by events why they are not published",
			"problem", err.Error())
	}
	repeat := now.Add(kube.EventPeriod)
	switch {
	case err == nil:
	case apierrors.IsAlreadyExists(err): // a process before this one created it
		repeat = end
	case apierrors.IsInvalid(err): // other events may be valid
	case apierrors.IsForbidden(err):
		r.history.paused = now.Add(pauseForbidden)
		return pauseForbidden
	default:
		r.history.paused = now.Add(pauseFailed)
		return pauseFailed
	}
	r.history.created(n, repeat)
	return repeat.Sub(now)
}

func (r *EventReconciler) event(n notice, note string, now time.Time) *eventsv1.Event {
	version, kind := property.GroupVersionKind(r.situation.API.Version).ToAPIVersionAndKind()
	regarding := corev1.ObjectReference{APIVersion: version, Kind: kind, Name: n.name, UID: n.uid}
	return kube.NewEvent(regarding, corev1.EventTypeWarning, n.reason, eventAction, note,
		eventSource, eventSource, now)
}
