package inventory

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// contentChanged compares the content of a ManagedCluster that a profile shows or leaves
// out, except for labels. Heartbeats, capacity and taints are not part of it.
func contentChanged(before, after client.Object) bool {
	b, okBefore := before.(*clusterv1.ManagedCluster)
	a, okAfter := after.(*clusterv1.ManagedCluster)
	if !okBefore || !okAfter {
		return true
	}
	return b.Status.Version.Kubernetes != a.Status.Version.Kubernetes ||
		!slices.Equal(b.Status.ClusterClaims, a.Status.ClusterClaims) ||
		b.Annotations[annotationLeftOut] != a.Annotations[annotationLeftOut] ||
		b.Annotations[annotationLabels] != a.Annotations[annotationLabels] ||
		displayName(b) != displayName(a) ||
		slices.ContainsFunc(profileConditions, func(shown shownCondition) bool {
			return kube.ConditionChanged(b.Status.Conditions, a.Status.Conditions, shown.source)
		})
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
