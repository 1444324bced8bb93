package inventory

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// CacheOptions says what of each kind the manager's cache needs to hold for this
// concern: only the ManagedClusterAddOns of this addon, and of every object only
// what is read. Whoever else reads these kinds from the same cache sees them cut
// down in the same way. Namespaces and CRDs are read as metadata only.
//
// ClusterProfiles are not among them: a cache cannot be told about a kind that
// may not be served yet. They are needed whole but for managed fields, which the
// manager's default transform is to strip.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}:                {Transform: trimCluster},
		&clusterv1beta2.ManagedClusterSet{}:        {Transform: trimSet},
		&clusterv1beta2.ManagedClusterSetBinding{}: {Transform: cache.TransformStripManagedFields()},
		&clusterv1beta1.Placement{}:                {Transform: trimPlacement},
		&clusterv1beta1.PlacementDecision{}:        {Transform: trimDecision},
		&addonv1beta1.ManagedClusterAddOn{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", contract.AddonName),
			Transform: trimAddon,
		},
		&corev1.Namespace{}: {Transform: trimMetadata},
		partial(crdKind):    {Transform: trimMetadata},
	}
}

// trimCluster keeps what selects a cluster and what its profile shows.
func trimCluster(in any) (any, error) {
	cluster, ok := in.(*clusterv1.ManagedCluster)
	if !ok {
		return in, nil
	}
	var conditions []metav1.Condition
	for _, shown := range profileConditions {
		if condition := meta.FindStatusCondition(cluster.Status.Conditions, shown.source); condition != nil {
			conditions = append(conditions, *condition)
		}
	}
	return &clusterv1.ManagedCluster{
		TypeMeta:   cluster.TypeMeta,
		ObjectMeta: trimmed(cluster.ObjectMeta),
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient},
		Status: clusterv1.ManagedClusterStatus{
			Conditions:    conditions,
			Version:       cluster.Status.Version,
			ClusterClaims: cluster.Status.ClusterClaims,
		},
	}, nil
}

func trimSet(in any) (any, error) {
	if set, ok := in.(*clusterv1beta2.ManagedClusterSet); ok {
		set.ObjectMeta = trimmed(set.ObjectMeta)
		set.Status = clusterv1beta2.ManagedClusterSetStatus{}
	}
	return in, nil
}

func trimPlacement(in any) (any, error) {
	if placement, ok := in.(*clusterv1beta1.Placement); ok {
		placement.ObjectMeta = trimmed(placement.ObjectMeta)
		placement.Spec = clusterv1beta1.PlacementSpec{}
		placement.Status.DecisionGroups = nil
	}
	return in, nil
}

func trimDecision(in any) (any, error) {
	if decision, ok := in.(*clusterv1beta1.PlacementDecision); ok {
		decision.ObjectMeta = trimmed(decision.ObjectMeta)
		for i := range decision.Status.Decisions {
			decision.Status.Decisions[i] = clusterv1beta1.ClusterDecision{ClusterName: decision.Status.Decisions[i].ClusterName}
		}
	}
	return in, nil
}

func trimAddon(in any) (any, error) {
	if addon, ok := in.(*addonv1beta1.ManagedClusterAddOn); ok {
		addon.ObjectMeta = trimmed(addon.ObjectMeta)
		addon.Spec = addonv1beta1.ManagedClusterAddOnSpec{}
		addon.Status = addonv1beta1.ManagedClusterAddOnStatus{Conditions: addon.Status.Conditions}
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
	obj.ObjectMeta = trimmed(obj.ObjectMeta)
	obj.Labels = nil
	if has {
		obj.Annotations = map[string]string{contract.AnnotationRequirePlacement: requirement}
	}
	return obj, nil
}

// trimmed keeps of metadata what identifies, selects and ends an object.
func trimmed(full metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              full.Name,
		Namespace:         full.Namespace,
		UID:               full.UID,
		ResourceVersion:   full.ResourceVersion,
		Generation:        full.Generation,
		CreationTimestamp: full.CreationTimestamp,
		DeletionTimestamp: full.DeletionTimestamp,
		Labels:            full.Labels,
	}
}
