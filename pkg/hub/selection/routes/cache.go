package routes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// CacheOptions returns which part of each kind the manager's cache must hold for the rule.
// All other readers of that cache see these kinds trimmed in the same way. Namespaces and
// CRDs are read as metadata only.
//
// The concerns that show or write ManagedClusters and ManagedClusterAddOns configure their
// caching (inventory.CacheOptions): the rule reads their metadata and
// spec.hubAcceptsClient.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&addonv1beta1.ClusterManagementAddOn{}: {
			Field:     fields.OneTermEqualSelector(metav1.ObjectNameField, contract.AddonName),
			Transform: cache.TransformStripManagedFields(),
		},
		&clusterv1beta2.ManagedClusterSet{}:        {Transform: trimSet},
		&clusterv1beta2.ManagedClusterSetBinding{}: {Transform: trimBinding},
		&clusterv1beta1.Placement{}:                {Transform: trimPlacement},
		&clusterv1beta1.PlacementDecision{}:        {Transform: trimDecision},
		&corev1.Namespace{}:                        {Transform: trimMetadata},
		kube.Partial(kube.CRDKind):                 {Transform: trimMetadata},
	}
}

func trimSet(in any) (any, error) {
	if set, ok := in.(*clusterv1beta2.ManagedClusterSet); ok {
		set.ObjectMeta = kube.TrimMeta(set.ObjectMeta)
		set.Labels = nil
		set.Status = clusterv1beta2.ManagedClusterSetStatus{}
	}
	return in, nil
}

// trimBinding, like the following, drops unused fields and labels, which any user with write
// access to a namespace can fill.
func trimBinding(in any) (any, error) {
	binding, ok := in.(*clusterv1beta2.ManagedClusterSetBinding)
	if !ok {
		return in, nil
	}
	binding.ObjectMeta = kube.TrimMeta(binding.ObjectMeta)
	binding.Labels = kube.OnlyLabels(binding.Labels, contract.LabelPublish)
	var kept []metav1.Condition
	bound := meta.FindStatusCondition(binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
	if bound != nil {
		kept = []metav1.Condition{{Type: bound.Type, Status: bound.Status}}
	}
	binding.Status = clusterv1beta2.ManagedClusterSetBindingStatus{Conditions: kept}
	return binding, nil
}

func trimPlacement(in any) (any, error) {
	if placement, ok := in.(*clusterv1beta1.Placement); ok {
		placement.ObjectMeta = kube.TrimMeta(placement.ObjectMeta)
		placement.Labels = kube.OnlyLabels(placement.Labels, contract.LabelPublish)
		groups := placement.Spec.DecisionStrategy.GroupStrategy
		placement.Spec = clusterv1beta1.PlacementSpec{}
		kept := &placement.Spec.DecisionStrategy.GroupStrategy
		kept.ClustersPerDecisionGroup = groups.ClustersPerDecisionGroup // the API server bounds its length
		if len(groups.DecisionGroups) > 0 {
			kept.DecisionGroups = []clusterv1beta1.DecisionGroup{{}} // that there are any
		}
		placement.Status.DecisionGroups = nil
	}
	return in, nil
}

func trimDecision(in any) (any, error) {
	if decision, ok := in.(*clusterv1beta1.PlacementDecision); ok {
		decision.ObjectMeta = kube.TrimMeta(decision.ObjectMeta)
		decision.Labels = kube.OnlyLabels(decision.Labels, clusterv1beta1.PlacementLabel,
			clusterv1beta1.DecisionGroupIndexLabel, clusterv1beta1.DecisionGroupNameLabel)
		for i := range decision.Status.Decisions {
			name := decision.Status.Decisions[i].ClusterName
			decision.Status.Decisions[i] = clusterv1beta1.ClusterDecision{ClusterName: name}
		}
	}
	return in, nil
}

// trimMetadata keeps names and the one annotation that is read, if it says anything.
func trimMetadata(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	const requirement = "true"
	requires := obj.Annotations[contract.AnnotationRequirePlacement] == requirement
	obj.ObjectMeta = kube.TrimMeta(obj.ObjectMeta)
	obj.Labels = nil
	if requires {
		obj.Annotations = map[string]string{contract.AnnotationRequirePlacement: requirement}
	}
	return obj, nil
}
