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
		&clusterv1beta2.ManagedClusterSet{}:        {Transform: kube.Trimmed(trimSet)},
		&clusterv1beta2.ManagedClusterSetBinding{}: {Transform: kube.Trimmed(trimBinding)},
		&clusterv1beta1.Placement{}:                {Transform: kube.Trimmed(trimPlacement)},
		&clusterv1beta1.PlacementDecision{}:        {Transform: kube.Trimmed(trimDecision)},
		&corev1.Namespace{}:                        {Transform: kube.Trimmed(trimMetadata)},
		kube.Partial(kube.CRDKind):                 {Transform: kube.Trimmed(trimMetadata)},
	}
}

func trimSet(set *clusterv1beta2.ManagedClusterSet) *clusterv1beta2.ManagedClusterSet {
	set.ObjectMeta = kube.TrimMeta(set.ObjectMeta)
	set.Labels = nil
	set.Status = clusterv1beta2.ManagedClusterSetStatus{}
	return set
}

// trimBinding, like the following, drops unused fields and labels, which any user with write
// access to a namespace can fill.
func trimBinding(binding *clusterv1beta2.ManagedClusterSetBinding) *clusterv1beta2.ManagedClusterSetBinding {
	binding.ObjectMeta = kube.TrimMeta(binding.ObjectMeta)
	binding.Labels = kube.OnlyLabels(binding.Labels, contract.LabelPublish)
	var kept []metav1.Condition
	bound := meta.FindStatusCondition(binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
	if bound != nil {
		kept = []metav1.Condition{{Type: bound.Type, Status: bound.Status}}
	}
	binding.Status = clusterv1beta2.ManagedClusterSetBindingStatus{Conditions: kept}
	return binding
}

func trimPlacement(placement *clusterv1beta1.Placement) *clusterv1beta1.Placement {
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
	return placement
}

func trimDecision(decision *clusterv1beta1.PlacementDecision) *clusterv1beta1.PlacementDecision {
	decision.ObjectMeta = kube.TrimMeta(decision.ObjectMeta)
	decision.Labels = kube.OnlyLabels(decision.Labels, clusterv1beta1.PlacementLabel,
		clusterv1beta1.DecisionGroupIndexLabel, clusterv1beta1.DecisionGroupNameLabel)
	for i := range decision.Status.Decisions {
		name := decision.Status.Decisions[i].ClusterName
		decision.Status.Decisions[i] = clusterv1beta1.ClusterDecision{ClusterName: name}
	}
	return decision
}

// trimMetadata keeps names and the one annotation that is read, if it says anything.
func trimMetadata(obj *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	const requirement = "true"
	requires := obj.Annotations[contract.AnnotationRequirePlacement] == requirement
	obj.ObjectMeta = kube.TrimMeta(obj.ObjectMeta)
	obj.Labels = nil
	if requires {
		obj.Annotations = map[string]string{contract.AnnotationRequirePlacement: requirement}
	}
	return obj
}
