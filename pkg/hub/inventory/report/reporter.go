package report

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// eventAction is what the controller did or refrained from.
const eventAction = "Publish"

// reportDelay turns a burst of changes in a namespace into one event.
const reportDelay = time.Second

// Reports returns what events say about a namespace and about a cluster: the outcomes, and what
// the rule says about Placements. Those about a namespace say which of its profiles are withheld,
// or lack an access provider, and why, and what slices of Placements do to clusters. Those about
// a cluster say that its profiles change more often than their budgets allow. every is how often
// a profile is written that has used up its budget.
func Reports(rule *selection.Rule, outcomes *Outcomes, clock clock.PassiveClock, every time.Duration) notices.Reports {
	return notices.Reports{
		Controller: profiles.FieldOwner, Action: eventAction, Delay: reportDelay,
		Current: func(ctx context.Context, scope types.NamespacedName) ([]notices.Notice, error) {
			if scope.Namespace == "" {
				return heldBackNotices(scope.Name, outcomes.heldBack(scope.Name), every), nil
			}
			risks, err := rule.InstallRisks(ctx, scope.Namespace)
			now := clock.Now()
			return slices.Concat(
				desiredNotices(outcomes.in(scope.Namespace)),
				overruledNotices(outcomes.overruledIn(scope.Namespace, now)),
				sliceNotices(risks, outcomes.inconclusiveIn(scope.Namespace, now)),
			), err
		},
	}
}
