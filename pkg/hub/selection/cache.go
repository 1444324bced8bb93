package selection

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
// spec.hubAcceptsClient. ClusterProfiles may not be served yet, so their caching cannot be
// configured.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1beta2.ManagedClusterSet{}:        {Transform: trimSet},
		&clusterv1beta2.ManagedClusterSetBinding{}: {Transform: cache.TransformStripManagedFields()},
		&clusterv1beta1.Placement{}:                {Transform: trimPlacement},
		&clusterv1beta1.PlacementDecision{}:        {Transform: trimDecision},
		&corev1.Namespace{}:                        {Transform: trimMetadata},
		kube.Partial(kube.CRDKind):                 {Transform: trimMetadata},
	}
}

func trimSet(in any) (any, error) {
	if set, ok := in.(*clusterv1beta2.ManagedClusterSet); ok {
		set.ObjectMeta = kube.TrimMeta(set.ObjectMeta)
		set.Status = clusterv1beta2.ManagedClusterSetStatus{}
	}
	return in, nil
}

func trimPlacement(in any) (any, error) {
	if placement, ok := in.(*clusterv1beta1.Placement); ok {
		placement.ObjectMeta = kube.TrimMeta(placement.ObjectMeta)
		placement.Spec = clusterv1beta1.PlacementSpec{}
		placement.Status.DecisionGroups = nil
	}
	return in, nil
}

func trimDecision(in any) (any, error) {
	if decision, ok := in.(*clusterv1beta1.PlacementDecision); ok {
		decision.ObjectMeta = kube.TrimMeta(decision.ObjectMeta)
		for i := range decision.Status.Decisions {
			name := decision.Status.Decisions[i].ClusterName
			decision.Status.Decisions[i] = clusterv1beta1.ClusterDecision{ClusterName: name}
		}
	}
	return in, nil
}

// trimMetadata keeps names and the one annotation that is read.
func trimMetadata(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	requirement, has := obj.Annotations[contract.AnnotationRequirePlacement]
	obj.ObjectMeta = kube.TrimMeta(obj.ObjectMeta)
	obj.Labels = nil
	if has {
		obj.Annotations = map[string]string{contract.AnnotationRequirePlacement: requirement}
	}
	return obj, nil
}
