package rule

import (
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Group is a decision group of a Placement. Clusters of a Placement that has none are in
// the zero Group.
type Group struct {
	Index int
	Name  string // may be empty
}

// Choice is what one Placement chooses, for consumers that publish it, and how far it can
// be trusted.
//
// Its answer is Yes if the Placement publishes in a namespace with a bound set, and No if
// it must not publish anything any more. While it is Unknown, everything stays as it is.
type Choice struct {
	Result

	// Placement is nil if there is none.
	Placement *clusterv1beta1.Placement

	// Clusters are those in the Placement's decisions. OCM orders them by group, and by
	// name in each group.
	Clusters map[string]Group

	// Incomplete says, as the end of a sentence about the Placement, why missing clusters may
	// still be added; it is empty if the decisions are complete.
	Incomplete string

	// Observed is the Placement with its decisions.
	Observed ObservedPlacement

	// Restoring names the CRDs whose missing objects may not have been restored yet.
	Restoring []string

	// Lagging are those whose caches may have been older than this process.
	Lagging watch.Lagging
}

// ChoiceObservation is the state of one Placement according to the caches.
type ChoiceObservation struct {
	Observation // without the fields that concern one cluster

	Placement *clusterv1beta1.Placement // nil if it does not exist
	Decisions []clusterv1beta1.PlacementDecision
}

// ChoiceOf determines what a Placement chooses.
func ChoiceOf(o ChoiceObservation) Choice {
	c := Choice{Placement: o.Placement, Restoring: o.RestoringCRDs, Lagging: o.Lagging}
	c.Result = choiceAnswer(o)
	if c.Answer != Yes {
		return c
	}
	c.Clusters = ChosenClusters(o.Decisions)
	c.Observed = ObservedPlacement{Placement: o.Placement, Summary: SummaryOf(o.Decisions)}
	c.Incomplete = UndecidedReason(c.Observed)
	return c
}

// choiceAnswer says whether a Placement publishes, and in a namespace that has a set.
func choiceAnswer(o ChoiceObservation) Result {
	var r Result
	switch {
	case len(o.Unserved) > 0:
		return Result{Why: "the hub does not serve " + o.Unserved[0]}
	case !o.ProfileAPI:
		return Result{Why: "the hub does not serve " + ProfileCRD}
	case o.Namespace == nil, o.Namespace.DeletionTimestamp != nil:
		return Result{Why: "the Namespace has not been seen yet, or is being deleted"}
	case o.Placement == nil:
		return r.deny(o.Observation, "there is no such Placement", PlacementCRD)
	case o.Placement.DeletionTimestamp != nil:
		return r.denyGoing("the Placement is being deleted", PlacementCRD)
	case !Publishes(o.Placement):
		r.Answer, r.Why = No, "the Placement is not labeled "+contract.LabelPublish+"=true"
		return r
	}
	switch bound, why := anyBound(o.Bindings); bound {
	case No:
		return r.deny(o.Observation, why, unboundCRDs(o.Bindings, SetCRD)...)
	case Unknown:
		return Result{Why: why}
	default:
		return Result{Answer: Yes}
	}
}

// anyBound says whether a namespace has a bound and publishing set binding, regardless of the
// set's clusters.
func anyBound(bindings []Binding) (Answer, string) {
	answer, why := No, "no ManagedClusterSet is bound and published in the Namespace"
	for _, b := range bindings {
		switch bound, _ := boundAnswer(b.Binding); bound {
		case No:
		case Yes:
			return Yes, ""
		case Unknown:
			answer, why = Unknown, "the condition Bound of a ManagedClusterSetBinding is unknown"
		}
	}
	return answer, why
}

// ChosenClusters returns the clusters that slices contain, with their groups. A cluster
// that is in two, because OCM has written only one of them so far, is in the first group.
func ChosenClusters(decisions []clusterv1beta1.PlacementDecision) map[string]Group {
	clusters := map[string]Group{}
	for i := range decisions {
		group := GroupOf(&decisions[i])
		for _, cluster := range DecidedClusters(&decisions[i]) {
			if before, ok := clusters[cluster]; !ok || before.Index > group.Index {
				clusters[cluster] = group
			}
		}
	}
	return clusters
}

// LeavingCRDs are the CRDs on which the absence of a cluster from a Placement's decisions
// rests.
var LeavingCRDs = []string{PlacementCRD, DecisionCRD, BindingCRD, SetCRD, ClusterCRD}
