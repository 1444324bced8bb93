package report

import (
	"slices"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// countedAs returns the state under which a pair with an outcome is counted; known is false
// for a pair without one.
func countedAs(out Outcome, known bool) metrics.Pair {
	if !known {
		return metrics.Pair{}
	}
	switch out.Kind {
	case InPlace:
		return metrics.Pair{State: contract.ReasonSynced}
	case Undecided, Doubtful:
		return metrics.Pair{State: contract.ReasonSelectionUnknown}
	case Foreign:
		return metrics.Pair{State: contract.ReasonForeignProfile}
	case LeftAlone:
		return metrics.Pair{State: metrics.StateLeftAlone}
	case Failed:
		return metrics.Pair{State: contract.ReasonWriteFailed}
	case Contested:
		return metrics.Pair{State: contract.ReasonContested}
	default:
		return metrics.Pair{Withheld: out.Reason}
	}
}

// restsOnPlacements is among the CRDs that a No rests on if Placements are the reason.
const restsOnPlacements = "placements.cluster.open-cluster-management.io"

// withheldFor returns why a pair must have no profile, in the order in which the rule
// decides.
func withheldFor(o profiles.Observed, s selection.Result) string {
	switch {
	case o.Cluster == nil:
		return metrics.WithheldClusterMissing
	case o.Cluster.DeletionTimestamp != nil:
		return metrics.WithheldClusterDetaching
	case !o.Cluster.Spec.HubAcceptsClient:
		return metrics.WithheldClusterNotAccepted
	case o.Addon == nil:
		return metrics.WithheldAddonMissing
	case o.Addon.DeletionTimestamp != nil:
		return metrics.WithheldAddonRemoving
	case s.BySetType:
		return metrics.WithheldNotExclusive
	case s.ByPlacement:
		return metrics.WithheldNotPlaced
	case slices.Contains(s.Rests, restsOnPlacements):
		return metrics.WithheldPlacementMissing
	default:
		return metrics.WithheldNotBound
	}
}
