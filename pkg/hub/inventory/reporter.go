package inventory

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
)

// eventAction is what the controller did or refrained from.
const eventAction = "Publish"

// Reporter creates the events that say which profiles of a namespace are withheld, or
// lack an access provider, and why. The request's name is the namespace.
type Reporter struct {
	outcomes *outcomes
	events   *notices.Reporter
}

func newReporter(reader client.Reader, writer client.Client, clock clock.PassiveClock, outcomes *outcomes) *Reporter {
	return &Reporter{
		outcomes: outcomes, events: notices.NewReporter(reader, writer, clock, ControllerName, eventAction),
	}
}

// Reconcile creates an event about each object of the namespace whose last event is out of
// date.
func (r *Reporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	scope := types.NamespacedName{Namespace: req.Name}
	again, err := r.events.Report(ctx, scope, desiredNotices(r.outcomes.in(req.Name)))
	return reconcile.Result{RequeueAfter: again}, err
}
