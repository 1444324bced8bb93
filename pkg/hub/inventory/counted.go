package inventory

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// measured returns a comparison that tells the metrics when a ManagedCluster has changed,
// before the change enqueues any pair.
func measured(
	changed func(before, after client.Object) bool, counts *metrics.Metrics,
) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		if !changed(before, after) {
			return false
		}
		counts.ClusterChanged(after.GetName(), after.GetResourceVersion())
		return true
	}
}

// rejectedCounter counts the rejected claims recorded on cached ManagedClusters.
type rejectedCounter struct{ counts *metrics.Metrics }

var _ toolscache.ResourceEventHandler = rejectedCounter{}

// OnAdd implements toolscache.ResourceEventHandler.
func (r rejectedCounter) OnAdd(after any, _ bool) { r.count(after, 1) }

// OnUpdate implements toolscache.ResourceEventHandler.
func (r rejectedCounter) OnUpdate(before, after any) {
	r.count(before, -1)
	r.count(after, 1)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (r rejectedCounter) OnDelete(before any) { r.count(before, -1) }

func (r rejectedCounter) count(object any, sign int) {
	cluster, ok := kube.InEvent[*clusterv1.ManagedCluster](object)
	if !ok {
		return
	}
	for reason, count := range profiles.Rejected(cluster) {
		r.counts.RejectClaims(reason, sign*count)
	}
}
