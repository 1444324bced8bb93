package profiles

import clusterv1 "open-cluster-management.io/api/cluster/v1"

// limits are the manager's own.
var limits = Limits{Properties: 1000, PropertyBytes: 64 << 10}

// asCached is a ManagedCluster as the manager's cache holds it.
func asCached(cluster *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	trimmed, _ := limits.Trim(cluster.DeepCopy())
	return trimmed
}
