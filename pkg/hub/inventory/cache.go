package inventory

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// CacheOptions says what of ManagedClusters and ManagedClusterAddOns the manager's
// cache needs to hold, in addition to selection.CacheOptions: only the
// ManagedClusterAddOns of this addon, and of every object only what is read.
// Whoever else reads these kinds from the same cache sees them trimmed in the same
// way.
//
// ClusterProfiles are needed whole but for managed fields. They may not be served
// yet, so the manager's default transform must strip those.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Transform: trimCluster},
		&addonv1beta1.ManagedClusterAddOn{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", contract.AddonName),
			Transform: trimAddon,
		},
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
		ObjectMeta: kube.TrimMeta(cluster.ObjectMeta),
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient},
		Status: clusterv1.ManagedClusterStatus{
			Conditions:    conditions,
			Version:       cluster.Status.Version,
			ClusterClaims: cluster.Status.ClusterClaims,
		},
	}, nil
}

func trimAddon(in any) (any, error) {
	if addon, ok := in.(*addonv1beta1.ManagedClusterAddOn); ok {
		addon.ObjectMeta = kube.TrimMeta(addon.ObjectMeta)
		addon.Spec = addonv1beta1.ManagedClusterAddOnSpec{}
		addon.Status = addonv1beta1.ManagedClusterAddOnStatus{Conditions: addon.Status.Conditions}
	}
	return in, nil
}
