package inventory

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// eventAction is what the controller did or refrained from.
const eventAction = "Publish"

// Reporter creates the events that say which profiles of a namespace are withheld, or
// lack an access provider, and why, and what slices of Placements do to clusters. The
// request's name is the namespace.
type Reporter struct {
	rule     *selection.Rule
	outcomes *outcomes
	events   *notices.Reporter
	clock    clock.PassiveClock
}

func newReporter(
	reader client.Reader, writer client.Client, clock clock.PassiveClock, rule *selection.Rule, outcomes *outcomes,
) *Reporter {
	return &Reporter{
		rule: rule, outcomes: outcomes, clock: clock,
		events: notices.NewReporter(reader, writer, clock, ControllerName, eventAction),
	}
}

// Reconcile creates an event about each object of the namespace whose last event is out of
// date.
func (r *Reporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	scope := types.NamespacedName{Namespace: req.Name}
	risks, err := r.rule.InstallRisks(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.clock.Now()
	current := slices.Concat(
		desiredNotices(r.outcomes.in(req.Name)),
		overruledNotices(r.outcomes.overruledIn(req.Name, now)),
		sliceNotices(risks, r.outcomes.inconclusiveIn(req.Name, now)),
	)
	again, err := r.events.Report(ctx, scope, current)
	return reconcile.Result{RequeueAfter: again}, err
}
