package routes

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
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
func ofPublishing(changed func(before, after client.Object) bool) predicate.Predicate {
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
func membershipChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1.ManagedCluster)
	a, okAfter := after.(*clusterv1.ManagedCluster)
	return !okBefore || !okAfter || b.Spec.HubAcceptsClient != a.Spec.HubAcceptsClient ||
		!apiequality.Semantic.DeepEqual(b.Labels, a.Labels)
}

// setChanged compares which clusters a ManagedClusterSet selects. Its status counts them,
// but a count does not show that two have swapped.
func setChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta2.ManagedClusterSet)
	a, okAfter := after.(*clusterv1beta2.ManagedClusterSet)
	return !okBefore || !okAfter || !apiequality.Semantic.DeepEqual(b.Spec.ClusterSelector, a.Spec.ClusterSelector)
}

// bindingChanged compares whether a ManagedClusterSetBinding binds and publishes, and what.
func bindingChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta2.ManagedClusterSetBinding)
	a, okAfter := after.(*clusterv1beta2.ManagedClusterSetBinding)
	if !okBefore || !okAfter {
		return true
	}
	bound := func(binding *clusterv1beta2.ManagedClusterSetBinding) metav1.ConditionStatus {
		condition := meta.FindStatusCondition(binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
		if condition == nil {
			return ""
		}
		return condition.Status
	}
	return b.Spec.ClusterSet != a.Spec.ClusterSet || bound(b) != bound(a) ||
		b.Labels[contract.LabelPublish] != a.Labels[contract.LabelPublish]
}

// placementScopeChanged compares whether a Placement publishes.
func placementScopeChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta1.Placement)
	a, okAfter := after.(*clusterv1beta1.Placement)
	return !okBefore || !okAfter || rule.Publishes(b) != rule.Publishes(a)
}

// placementStatusChanged compares whether a Placement's decisions are complete.
func placementStatusChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta1.Placement)
	a, okAfter := after.(*clusterv1beta1.Placement)
	if !okBefore || !okAfter {
		return true
	}
	changed := func(conditionType string) bool {
		return kube.ConditionChanged(b.Status.Conditions, a.Status.Conditions, conditionType)
	}
	return b.Status.NumberOfSelectedClusters != a.Status.NumberOfSelectedClusters ||
		changed(clusterv1beta1.PlacementConditionSatisfied) || changed(clusterv1beta1.PlacementConditionMisconfigured)
}

// decisionChanged compares the clusters in a slice, and its Placement, but not scores and
// reasons.
func decisionChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta1.PlacementDecision)
	a, okAfter := after.(*clusterv1beta1.PlacementDecision)
	return !okBefore || !okAfter || rule.PlacementOf(b) != rule.PlacementOf(a) ||
		!slices.Equal(rule.DecidedClusters(b), rule.DecidedClusters(a))
}

// choiceChanged is decisionChanged for users of decision groups, too.
func choiceChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta1.PlacementDecision)
	a, okAfter := after.(*clusterv1beta1.PlacementDecision)
	return !okBefore || !okAfter || decisionChanged(b, a) || rule.GroupOf(b) != rule.GroupOf(a)
}

// requirementChanged compares whether a Namespace requires a Placement.
func requirementChanged(before, after client.Object) bool {
	const key = contract.AnnotationRequirePlacement
	return before.GetAnnotations()[key] != after.GetAnnotations()[key]
}
