package inventory

import (
	"maps"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
)

// contentChanged is profiles.ContentChanged.
func contentChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1.ManagedCluster)
	a, okAfter := after.(*clusterv1.ManagedCluster)
	return !okBefore || !okAfter || profiles.ContentChanged(b, a)
}

// versionChanged compares the versions: it is false only for a resync.
func versionChanged(before, after client.Object) bool {
	return before.GetResourceVersion() != after.GetResourceVersion()
}

// guardChanged compares everything but the status of an object that the guard reads: the
// ClusterManagementAddOn's status counts the progress of every rollout, and each count
// would enqueue every pair. Generations count changes of the spec; a kind without
// generations has no status, either.
func guardChanged(before, after client.Object) bool {
	if before.GetGeneration() == 0 || after.GetGeneration() == 0 {
		return versionChanged(before, after)
	}
	return before.GetGeneration() != after.GetGeneration() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
