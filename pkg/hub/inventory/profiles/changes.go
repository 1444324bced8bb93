package profiles

import (
	"slices"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ContentChanged compares the content of two versions of a ManagedCluster that a profile shows or
// leaves out, except for labels. Heartbeats, capacity and taints are not part of it.
func ContentChanged(before, after *clusterv1.ManagedCluster) bool {
	return before.Status.Version.Kubernetes != after.Status.Version.Kubernetes ||
		!slices.Equal(before.Status.ClusterClaims, after.Status.ClusterClaims) ||
		before.Annotations[annotationLeftOut] != after.Annotations[annotationLeftOut] ||
		before.Annotations[annotationLabels] != after.Annotations[annotationLabels] ||
		displayName(before) != displayName(after) ||
		slices.ContainsFunc(profileConditions, func(shown shownCondition) bool {
			return kube.ConditionChanged(before.Status.Conditions, after.Status.Conditions, shown.source)
		})
}
