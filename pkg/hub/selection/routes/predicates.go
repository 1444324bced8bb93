package routes

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ofPublishing passes Placements that are, or were, labelled for publishing.
func ofPublishing(changed func(before, after *clusterv1beta1.Placement) bool) predicate.Predicate {
	isPublishing := func(obj client.Object) bool {
		placement, ok := obj.(*clusterv1beta1.Placement)
		return ok && rule.Publishes(placement)
	}
	return predicate.And(kube.OnChange(changed), predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isPublishing(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isPublishing(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return isPublishing(e.ObjectOld) || isPublishing(e.ObjectNew) },
	})
}

// membershipChanged compares the fields that make a ManagedCluster part of the inventory
// and a member of sets.
func membershipChanged(before, after *clusterv1.ManagedCluster) bool {
	return before.Spec.HubAcceptsClient != after.Spec.HubAcceptsClient ||
		!apiequality.Semantic.DeepEqual(before.Labels, after.Labels)
}

// setChanged compares which clusters a ManagedClusterSet selects. Its status counts them,
// but a count does not show that two have swapped.
func setChanged(before, after *clusterv1beta2.ManagedClusterSet) bool {
	return !apiequality.Semantic.DeepEqual(before.Spec.ClusterSelector, after.Spec.ClusterSelector)
}

// bindingChanged compares whether a ManagedClusterSetBinding binds and publishes, and what.
func bindingChanged(before, after *clusterv1beta2.ManagedClusterSetBinding) bool {
	bound := func(binding *clusterv1beta2.ManagedClusterSetBinding) metav1.ConditionStatus {
		return kube.StatusOf(binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
	}
	return before.Spec.ClusterSet != after.Spec.ClusterSet || bound(before) != bound(after) ||
		before.Labels[contract.LabelPublish] != after.Labels[contract.LabelPublish]
}

// placementScopeChanged compares whether a Placement publishes.
func placementScopeChanged(before, after *clusterv1beta1.Placement) bool {
	return rule.Publishes(before) != rule.Publishes(after)
}

// placementStatusChanged compares whether a Placement's decisions are complete.
func placementStatusChanged(before, after *clusterv1beta1.Placement) bool {
	changed := func(conditionType string) bool {
		return kube.ConditionChanged(before.Status.Conditions, after.Status.Conditions, conditionType)
	}
	return before.Status.NumberOfSelectedClusters != after.Status.NumberOfSelectedClusters ||
		changed(clusterv1beta1.PlacementConditionSatisfied) || changed(clusterv1beta1.PlacementConditionMisconfigured)
}

// decisionChanged compares the clusters in a slice, and its Placement, but not scores and
// reasons.
func decisionChanged(before, after *clusterv1beta1.PlacementDecision) bool {
	return rule.PlacementOf(before) != rule.PlacementOf(after) ||
		!slices.Equal(rule.DecidedClusters(before), rule.DecidedClusters(after))
}

// choiceChanged is decisionChanged for users of decision groups, too.
func choiceChanged(before, after *clusterv1beta1.PlacementDecision) bool {
	return decisionChanged(before, after) || rule.GroupOf(before) != rule.GroupOf(after)
}

// requirementChanged compares whether a Namespace requires a Placement.
func requirementChanged(before, after client.Object) bool {
	const key = contract.AnnotationRequirePlacement
	return before.GetAnnotations()[key] != after.GetAnnotations()[key]
}
