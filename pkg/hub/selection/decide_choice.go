package selection

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Group is a decision group of a Placement. Clusters of a Placement that has none are in
// the zero Group.
type Group struct {
	Index int
	Name  string // may be empty
}

// Choice is what one Placement chooses, for those who publish that, and what it is worth.
//
// Its answer is Yes if the Placement publishes in a namespace with a bound set, and No if
// nothing of it may be published any more. On Unknown everything stays as it is.
type Choice struct {
	Result

	// Placement is nil if there is none.
	Placement *clusterv1beta1.Placement

	// Clusters are those that the Placement's decisions name. OCM orders them by group,
	// and by name in each.
	Clusters map[string]Group

	// Incomplete says, as the end of a sentence about the Placement, why clusters that
	// are missing may only not be named yet; it is empty when the decisions are complete.
	Incomplete string

	observed  observedPlacement
	restoring []string
}

// choiceObservation is what the caches say of one Placement.
type choiceObservation struct {
	Observation // without what concerns one cluster

	placement *clusterv1beta1.Placement // nil if there is none
	decisions []clusterv1beta1.PlacementDecision
}

// decideChoice tells what a Placement chooses.
func decideChoice(o choiceObservation) Choice {
	c := Choice{Placement: o.placement, restoring: o.restoring}
	c.Result = choiceAnswer(o)
	if c.Answer != Yes {
		return c
	}
	c.Clusters = chosenClusters(o.decisions)
	sum := tally{decisions: len(c.Clusters), slices: len(o.decisions)}
	for i := range o.decisions {
		sum.newest = later(sum.newest, o.decisions[i].ResourceVersion)
	}
	c.observed = observedPlacement{placement: o.placement, tally: sum}
	c.Incomplete = undecidedReason(c.observed)
	return c
}

// choiceAnswer tells whether a Placement publishes, and in a namespace that has a set.
func choiceAnswer(o choiceObservation) Result {
	var r Result
	switch {
	case len(o.Unserved) > 0:
		return Result{Why: "the hub does not serve " + o.Unserved[0]}
	case !o.ProfileAPI:
		return Result{Why: "the hub does not serve " + ProfileCRD}
	case o.Namespace == nil, o.Namespace.DeletionTimestamp != nil:
		return Result{Why: "the Namespace has not been seen yet, or is being deleted"}
	case o.placement == nil:
		return r.deny(o.Observation, "there is no such Placement", placementCRD)
	case o.placement.DeletionTimestamp != nil:
		r.Answer, r.Why, r.Rests, r.Going = No, "the Placement is being deleted", []string{placementCRD}, true
		return r
	case !publishes(o.placement):
		r.Answer, r.Why = No, "the Placement is not labelled "+contract.LabelPublish+"=true"
		return r
	}
	switch bound, why := anyBound(o.bindings); bound {
	case No:
		return r.deny(o.Observation, why, bindingCRD, setCRD)
	case Unknown:
		return Result{Why: why}
	default:
		return Result{Answer: Yes}
	}
}

// anyBound tells whether a namespace has a bound and publishing set binding, whatever
// clusters the set has.
func anyBound(bindings []observedBinding) (Answer, string) {
	answer, why := No, "no ManagedClusterSet is bound and published in the Namespace"
	for _, b := range bindings {
		if b.binding.Labels[contract.LabelPublish] == "false" || b.binding.DeletionTimestamp != nil {
			continue
		}
		bound := meta.FindStatusCondition(b.binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
		switch {
		case bound != nil && bound.Status == metav1.ConditionTrue:
			return Yes, ""
		case bound == nil || bound.Status != metav1.ConditionFalse:
			answer, why = Unknown, "a ManagedClusterSetBinding has not been found bound or unbound"
		}
	}
	return answer, why
}

// chosenClusters are the clusters that slices name, with their groups. One that is in two,
// because OCM has written only one of them so far, is in the first group.
func chosenClusters(decisions []clusterv1beta1.PlacementDecision) map[string]Group {
	clusters := map[string]Group{}
	for i := range decisions {
		group := groupOf(&decisions[i])
		for _, decision := range decisions[i].Status.Decisions {
			if decision.ClusterName == "" {
				continue
			}
			if before, ok := clusters[decision.ClusterName]; !ok || before.Index > group.Index {
				clusters[decision.ClusterName] = group
			}
		}
	}
	return clusters
}

// groupOf is the decision group of a slice of OCM's.
func groupOf(decision *clusterv1beta1.PlacementDecision) Group {
	index, err := strconv.Atoi(decision.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	if err != nil || index < 0 {
		index = 0
	}
	return Group{Index: index, Name: decision.Labels[clusterv1beta1.DecisionGroupNameLabel]}
}

// leavingCRDs are the CRDs that the absence of a cluster from a Placement's decisions
// rests on.
var leavingCRDs = []string{placementCRD, decisionCRD, bindingCRD, setCRD, clusterCRD}
