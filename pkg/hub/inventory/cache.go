package inventory

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// CacheOptions returns which part of ManagedClusters and ClusterProfiles the manager's cache
// must hold, in addition to selection.CacheOptions: only the fields that are read. All other
// readers of that cache see them trimmed in the same way.
//
// Of the content that a spoke sent, a ManagedCluster keeps what the limits allow, and a
// list of what was left out: see package profiles.
func CacheOptions(limits profiles.Limits) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Transform: kube.Trimmed(func(full *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
			trimmed, _ := limits.Trim(full)
			return trimmed
		})},
		&inventoryv1alpha1.ClusterProfile{}: {Transform: kube.Trimmed(profiles.Trim)},
	}
}
