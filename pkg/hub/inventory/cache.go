package inventory

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// CacheOptions says what of ManagedClusters the manager's cache needs to hold, in
// addition to selection.CacheOptions: only what is read. Whoever else reads them from
// the same cache sees them trimmed in the same way.
//
// Of what a spoke sent, a ManagedCluster keeps what the limits allow, and what it
// lost: see leftOutOf.
//
// ClusterProfiles may not be served yet, so they cannot be configured here: see
// DefaultTransform.
func CacheOptions(limits Limits) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Transform: limits.trimCluster},
	}
}

// DefaultTransform is for the kinds of which nobody says how to cache them. It strips
// managed fields. A ClusterProfile with labels that its annotation does not list keeps
// the part that says which of them are copies: see copiedBefore.
func DefaultTransform() toolscache.TransformFunc {
	strip := cache.TransformStripManagedFields()
	return func(in any) (any, error) {
		profile, ok := in.(*inventoryv1alpha1.ClusterProfile)
		if !ok || !selection.IsMarked(profile) || !hasUnlistedLabel(profile) {
			return strip(in)
		}
		var ours []metav1.ManagedFieldsEntry
		for _, entry := range profile.ManagedFields {
			if isOurRecord(entry) {
				ours = append(ours, entry)
			}
		}
		profile.ManagedFields = ours
		return profile, nil
	}
}

// trimCluster keeps what selects a cluster and what its profile shows. An informer
// may trim an object twice.
func (l Limits) trimCluster(in any) (any, error) {
	cluster, ok := in.(*clusterv1.ManagedCluster)
	if !ok {
		return in, nil
	}
	var conditions []metav1.Condition
	for _, shown := range profileConditions {
		if condition := meta.FindStatusCondition(cluster.Status.Conditions, shown.source); condition != nil {
			condition := *condition
			condition.Message = kube.Shorten(condition.Message, maxConditionMessageBytes)
			conditions = append(conditions, condition)
		}
	}
	claims, leftOut := l.judgeClaims(cluster.Status.ClusterClaims)
	version, problem := judgeVersion(cluster.Status.Version.Kubernetes)
	if problem != "" {
		leftOut = append(leftOut, problem)
	}
	trimmed := &clusterv1.ManagedCluster{
		TypeMeta:   cluster.TypeMeta,
		ObjectMeta: kube.TrimMeta(cluster.ObjectMeta),
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient},
		Status: clusterv1.ManagedClusterStatus{
			Conditions:    conditions,
			Version:       clusterv1.ManagedClusterVersion{Kubernetes: version},
			ClusterClaims: claims,
		},
	}
	rememberLeftOut(trimmed, append(leftOut, leftOutOf(cluster)...))
	return trimmed, nil
}
