package report

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// eventAction is what the controller did or refrained from.
const eventAction = "Publish"

// Reporter creates events about a namespace and about a cluster. Those about a namespace say
// which of its profiles are withheld, or lack an access provider, and why, and what slices of
// Placements do to clusters. Those about a cluster say that its profiles change more often than
// their budgets allow. The request is a namespace without a name, or the name of a cluster.
type Reporter struct {
	rule     *selection.Rule
	outcomes *Outcomes
	clock    clock.PassiveClock
	every    time.Duration

	// Many clusters must not delay the events of namespaces, so the rates are their own.
	inNamespaces, onClusters *notices.Reporter
}

// NewReporter returns a Reporter of the outcomes, and of what the rule says about Placements. every is
// how often a profile is written that has used up its budget.
func NewReporter(
	reader client.Reader, writer client.Client, rule *selection.Rule, outcomes *Outcomes, clock clock.PassiveClock,
	every time.Duration,
) *Reporter {
	events := func() *notices.Reporter {
		return notices.NewReporter(reader, writer, clock, profiles.FieldOwner, eventAction)
	}
	return &Reporter{
		rule: rule, outcomes: outcomes, clock: clock, every: every, inNamespaces: events(), onClusters: events(),
	}
}

// Reconcile creates an event about each object in the scope whose last event is out of date.
func (r *Reporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	scope, events := req.NamespacedName, r.onClusters
	current := heldBackNotices(scope.Name, r.outcomes.heldBack(scope.Name), r.every)
	if scope.Namespace != "" {
		var err error
		if current, err = r.in(ctx, scope.Namespace); err != nil {
			return reconcile.Result{}, err
		}
		events = r.inNamespaces
	}
	again, err := events.Report(ctx, scope, current)
	return reconcile.Result{RequeueAfter: again}, err
}

// in returns everything to report in a namespace.
func (r *Reporter) in(ctx context.Context, namespace string) ([]notices.Notice, error) {
	risks, err := r.rule.InstallRisks(ctx, namespace)
	now := r.clock.Now()
	return slices.Concat(
		desiredNotices(r.outcomes.in(namespace)),
		overruledNotices(r.outcomes.overruledIn(namespace, now)),
		sliceNotices(risks, r.outcomes.inconclusiveIn(namespace, now)),
	), err
}
