package inventory

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
)

// heldBackAfter is for how long changes of a profile must have had to wait for its budget,
// one after the other, before somebody is told.
const heldBackAfter = time.Minute

// heldBackReporter creates the events on ManagedClusters whose profiles change more often
// than their budgets allow. The request's name is the cluster.
type heldBackReporter struct {
	outcomes *outcomes
	events   *notices.Reporter
	every    time.Duration
}

func newHeldBackReporter(
	reader client.Reader, writer client.Client, clock clock.PassiveClock, outcomes *outcomes, every time.Duration,
) *heldBackReporter {
	return &heldBackReporter{
		outcomes: outcomes, every: every,
		events: notices.NewReporter(reader, writer, clock, ControllerName, eventAction),
	}
}

// Reconcile creates an event about the cluster if the last one is out of date.
func (r *heldBackReporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	current := heldBackNotices(req.Name, r.outcomes.heldBack(req.Name), r.every)
	again, err := r.events.Report(ctx, types.NamespacedName{Name: req.Name}, current)
	return reconcile.Result{RequeueAfter: again}, err
}
