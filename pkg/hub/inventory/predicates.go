package inventory

import (
	"maps"
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

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// onChange passes objects that come and go, and updates that changed says
// matter.
func onChange(changed func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				isGoing(e.ObjectOld) != isGoing(e.ObjectNew) ||
				changed(e.ObjectOld, e.ObjectNew)
		},
	}
}

// afterStart passes what comes after the start: the start itself looks at every pair
// anyway.
func afterStart(p predicate.Predicate) predicate.Predicate {
	return predicate.And(p, predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	})
}

// ofPublishing passes Placements that are labelled for publishing, or were.
func ofPublishing(changed func(before, after client.Object) bool) predicate.Predicate {
	isPublishing := func(obj client.Object) bool {
		placement, ok := obj.(*clusterv1beta1.Placement)
		return ok && publishes(placement)
	}
	return predicate.And(onChange(changed), predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isPublishing(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isPublishing(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return isPublishing(e.ObjectOld) || isPublishing(e.ObjectNew) },
	})
}

func isGoing(obj client.Object) bool { return obj.GetDeletionTimestamp() != nil }

// never is for objects of which only coming and going matters.
func never(_, _ client.Object) bool { return false }

// clusterChanged: what a profile shows of a ManagedCluster, or what selects it.
// Heartbeats, capacity and taints are none of that.
func clusterChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1.ManagedCluster)
	a, okAfter := after.(*clusterv1.ManagedCluster)
	if !okBefore || !okAfter {
		return true
	}
	return b.Spec.HubAcceptsClient != a.Spec.HubAcceptsClient ||
		b.Status.Version.Kubernetes != a.Status.Version.Kubernetes ||
		!apiequality.Semantic.DeepEqual(b.Labels, a.Labels) ||
		!slices.Equal(b.Status.ClusterClaims, a.Status.ClusterClaims) ||
		slices.ContainsFunc(profileConditions, func(shown struct{ target, source string }) bool {
			return conditionChanged(b.Status.Conditions, a.Status.Conditions, shown.source)
		})
}

// conditionChanged compares what people read of a condition.
func conditionChanged(before, after []metav1.Condition, conditionType string) bool {
	b, a := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
	if b == nil || a == nil {
		return b != a
	}
	return b.Status != a.Status || b.Reason != a.Reason || b.Message != a.Message
}

// setChanged: which clusters a ManagedClusterSet selects. Its status counts them,
// and a count cannot tell a swap.
func setChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta2.ManagedClusterSet)
	a, okAfter := after.(*clusterv1beta2.ManagedClusterSet)
	return !okBefore || !okAfter || !apiequality.Semantic.DeepEqual(b.Spec.ClusterSelector, a.Spec.ClusterSelector)
}

// bindingChanged: whether and what a ManagedClusterSetBinding binds and
// publishes.
func bindingChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta2.ManagedClusterSetBinding)
	a, okAfter := after.(*clusterv1beta2.ManagedClusterSetBinding)
	if !okBefore || !okAfter {
		return true
	}
	bound := func(binding *clusterv1beta2.ManagedClusterSetBinding) metav1.ConditionStatus {
		if condition := meta.FindStatusCondition(binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType); condition != nil {
			return condition.Status
		}
		return ""
	}
	return b.Spec.ClusterSet != a.Spec.ClusterSet || bound(b) != bound(a) ||
		b.Labels[contract.LabelPublish] != a.Labels[contract.LabelPublish]
}

// placementScopeChanged: whether a Placement publishes.
func placementScopeChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta1.Placement)
	a, okAfter := after.(*clusterv1beta1.Placement)
	return !okBefore || !okAfter || publishes(b) != publishes(a)
}

// placementStatusChanged: whether a Placement's decisions are complete.
func placementStatusChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta1.Placement)
	a, okAfter := after.(*clusterv1beta1.Placement)
	if !okBefore || !okAfter {
		return true
	}
	return b.Status.NumberOfSelectedClusters != a.Status.NumberOfSelectedClusters ||
		conditionChanged(b.Status.Conditions, a.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied) ||
		conditionChanged(b.Status.Conditions, a.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
}

// decisionChanged: which clusters a slice names, and for which Placement. Scores
// and reasons are not looked at.
func decisionChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1beta1.PlacementDecision)
	a, okAfter := after.(*clusterv1beta1.PlacementDecision)
	return !okBefore || !okAfter || placementOf(b) != placementOf(a) ||
		!slices.Equal(decidedClusters(b), decidedClusters(a))
}

// requirementChanged: whether a Namespace requires a Placement.
func requirementChanged(before, after client.Object) bool {
	return before.GetAnnotations()[contract.AnnotationRequirePlacement] != after.GetAnnotations()[contract.AnnotationRequirePlacement]
}

// versionChanged: anything at all, but for resyncs.
func versionChanged(before, after client.Object) bool {
	return before.GetResourceVersion() != after.GetResourceVersion()
}

// guardChanged: anything but the status of an object that the guard asks. The
// ClusterManagementAddOn's counts the progress of every rollout, and each count
// would have every pair looked at again. Only a spec is counted in generations; a
// kind without them has no status either.
func guardChanged(before, after client.Object) bool {
	if before.GetGeneration() == 0 || after.GetGeneration() == 0 {
		return versionChanged(before, after)
	}
	return before.GetGeneration() != after.GetGeneration() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// reportChanged: somebody changed our condition on a ManagedClusterAddOn.
func reportChanged(before, after client.Object) bool {
	b, okBefore := before.(*addonv1beta1.ManagedClusterAddOn)
	a, okAfter := after.(*addonv1beta1.ManagedClusterAddOn)
	return !okBefore || !okAfter || conditionChanged(b.Status.Conditions, a.Status.Conditions, contract.ConditionProfilesSynced)
}

// isRelevantCRD passes the CRDs this concern rests on.
func isRelevantCRD() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetName() == profileCRD || slices.Contains(sourceCRDs, obj.GetName())
	})
}
