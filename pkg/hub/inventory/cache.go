package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
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
func CacheOptions(limits Limits) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Transform: limits.trimCluster},
	}
}

// DefaultTransform is for kinds without cache options of their own. It strips managed
// fields, and reduces a ClusterProfile to the fields that are read.
func DefaultTransform() toolscache.TransformFunc {
	strip := cache.TransformStripManagedFields()
	return func(in any) (any, error) {
		if profile, ok := in.(*inventoryv1alpha1.ClusterProfile); ok {
			return trimProfile(profile), nil
		}
		return strip(in)
	}
}

// trimProfile keeps the fields of a ClusterProfile that are read. A patch of its metadata
// names single labels and annotations, so of others' only the labels must be known: a label
// is not copied over a key that somebody else uses. A patch of its status replaces whole
// lists, so these stay whole. Of another cluster manager's profile it keeps only the owner.
// A profile with labels that its annotation does not list keeps the part of its managed
// fields that says which of them are copies: see copiedBefore. Of the part about its
// properties it keeps a digest.
func trimProfile(profile *inventoryv1alpha1.ClusterProfile) *inventoryv1alpha1.ClusterProfile {
	trimmed := &inventoryv1alpha1.ClusterProfile{
		TypeMeta: profile.TypeMeta, ObjectMeta: kube.TrimMeta(profile.ObjectMeta),
	}
	trimmed.Spec.ClusterManager = profile.Spec.ClusterManager
	if !selection.IsOurs(profile) {
		trimmed.Labels = nil
		return trimmed
	}
	for _, key := range []string{contract.AnnotationCopiedLabels, contract.AnnotationProperties} {
		if value, ok := profile.Annotations[key]; ok {
			if trimmed.Annotations == nil {
				trimmed.Annotations = map[string]string{}
			}
			trimmed.Annotations[key] = value
		}
	}
	if profile.DeletionTimestamp != nil {
		// They are reported, a few by name.
		trimmed.Finalizers = slices.Clone(profile.Finalizers[:min(len(profile.Finalizers), maxFinalizers)])
	}
	if selection.IsMarked(profile) && hasUnlistedLabel(profile) {
		for _, entry := range profile.ManagedFields {
			if isOurRecord(entry) {
				trimmed.ManagedFields = append(trimmed.ManagedFields, entry)
			}
		}
	}
	if len(profile.Status.Properties) > 0 {
		trimmed.ManagedFields = append(trimmed.ManagedFields, authorshipOf(profile).digest())
	}
	trimmed.Spec.DisplayName = profile.Spec.DisplayName
	// Decoding leaves spare capacity in every list.
	trimmed.Status = inventoryv1alpha1.ClusterProfileStatus{
		Version:         profile.Status.Version,
		Conditions:      slices.Clone(profile.Status.Conditions),
		Properties:      slices.Clone(profile.Status.Properties),
		AccessProviders: slices.Clone(profile.Status.AccessProviders),
	}
	for i := range trimmed.Status.AccessProviders {
		endpoint := &trimmed.Status.AccessProviders[i].Cluster
		endpoint.Extensions = slices.Clone(endpoint.Extensions)
	}
	return trimmed
}

// maxFinalizers is more than a report names.
const maxFinalizers = 2 * maxNames

// keepRegistries keeps the image registries of a cluster's addons, which pkg/hub/addon
// reads.
func keepRegistries(trimmed, cluster *clusterv1.ManagedCluster) {
	const registries = clusterv1.ClusterImageRegistriesAnnotationKey
	if value, ok := cluster.Annotations[registries]; ok {
		if trimmed.Annotations == nil {
			trimmed.Annotations = map[string]string{}
		}
		if len(value) > contract.MaxRegistriesBytes {
			value = contract.RegistriesTooLong
		}
		trimmed.Annotations[registries] = value
	}
}

// trimCluster keeps what selects a cluster, what its profile shows, and the registries of
// its addons' images. An informer may trim an object twice.
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
			ClusterClaims: slices.Clone(claims),
		},
	}
	leftOut = append(leftOut, leftOutOf(cluster)...)
	labels, unfit := l.judgeLabels(claims)
	for _, problem := range unfit {
		if !slices.Contains(leftOut, problem) { // as it is if the cluster was trimmed before
			leftOut = append(leftOut, problem)
		}
	}
	rememberLeftOut(trimmed, leftOut)
	rememberLabels(trimmed, labels)
	rememberRejected(trimmed, l.rejectedOf(cluster, len(claims)))
	keepRegistries(trimmed, cluster)
	keepDisplayName(trimmed, cluster)
	return trimmed, nil
}
