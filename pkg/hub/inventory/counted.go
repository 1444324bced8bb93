package inventory

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
)

// measured returns a comparison that tells the metrics when a ManagedCluster has changed,
// before the change enqueues any pair.
func measured(counts *metrics.Metrics) func(before, after *clusterv1.ManagedCluster) bool {
	return func(before, after *clusterv1.ManagedCluster) bool {
		if !profiles.ContentChanged(before, after) {
			return false
		}
		counts.ClusterChanged(after.Name, after.ResourceVersion)
		return true
	}
}

// countRejected counts the rejected claims recorded on a cached ManagedCluster that changes.
func countRejected(counts *metrics.Metrics, before, after *clusterv1.ManagedCluster) {
	if before != nil {
		for reason, count := range profiles.Rejected(before) {
			counts.RejectClaims(reason, -count)
		}
	}
	if after != nil {
		for reason, count := range profiles.Rejected(after) {
			counts.RejectClaims(reason, count)
		}
	}
}
