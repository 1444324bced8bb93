package inventory

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
)

// CacheOptions returns which part of ManagedClusters the manager's cache must hold, in
// addition to selection.CacheOptions: only the fields that are read. All other readers of
// that cache see them trimmed in the same way.
//
// Of the content that a spoke sent, a ManagedCluster keeps what the limits allow, and a
// list of what was left out: see leftOutOf.
//
// ClusterProfiles may not be served yet, so they cannot be configured here: see
// DefaultTransform.
func CacheOptions(limits profiles.Limits) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Transform: func(in any) (any, error) {
			if cluster, ok := in.(*clusterv1.ManagedCluster); ok {
				in, _ = limits.Trim(cluster)
			}
			return in, nil
		}},
	}
}

// DefaultTransform is for kinds without their own cache options. It strips managed fields,
// and reduces a ClusterProfile to the fields that are read.
func DefaultTransform() toolscache.TransformFunc {
	strip := cache.TransformStripManagedFields()
	return func(in any) (any, error) {
		if profile, ok := in.(*inventoryv1alpha1.ClusterProfile); ok {
			return profiles.Trim(profile), nil
		}
		return strip(in)
	}
}
