package profiles

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Trim keeps the fields of a ClusterProfile that are read. A patch of its metadata names
// single labels and annotations, so of others' only the labels must be known: a label is not
// copied over a key that another client uses. A patch of its status replaces whole lists, so
// these stay whole. Of another cluster manager's profile it keeps only the owner. A profile
// with labels that its annotation does not list keeps the part of its managed fields that
// says which of them are copies: see copiedBefore. Of the part about its properties it keeps
// a digest.
func Trim(profile *inventoryv1alpha1.ClusterProfile) *inventoryv1alpha1.ClusterProfile {
	trimmed := &inventoryv1alpha1.ClusterProfile{
		TypeMeta: profile.TypeMeta, ObjectMeta: kube.TrimMeta(profile.ObjectMeta),
	}
	trimmed.Spec.ClusterManager = profile.Spec.ClusterManager
	if !selection.IsOurs(profile) {
		trimmed.Labels = nil
		return trimmed
	}
	trimmed.Annotations = kube.OnlyLabels(
		profile.Annotations, contract.AnnotationCopiedLabels, contract.AnnotationProperties)
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
const maxFinalizers = 2 * MaxNames

// keepRegistries keeps the image registries of a cluster's addons, which pkg/hub/addon
// reads.
func keepRegistries(trimmed, cluster *clusterv1.ManagedCluster) {
	const registries = clusterv1.ClusterImageRegistriesAnnotationKey
	if value, ok := cluster.Annotations[registries]; ok {
		if len(value) > contract.MaxRegistriesBytes {
			value = contract.RegistriesTooLong
		}
		metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, registries, value)
	}
}

// Trim returns the part of a cluster within the limits that selects it, that its profile shows,
// or that says which registries its addons' images have, and what was left out of it. Trimming a
// cluster twice changes nothing.
func (l Limits) Trim(cluster *clusterv1.ManagedCluster) (trimmed *clusterv1.ManagedCluster, leftOut []string) {
	var conditions []metav1.Condition
	for _, shown := range profileConditions {
		if condition := meta.FindStatusCondition(cluster.Status.Conditions, shown.source); condition != nil {
			condition := *condition
			condition.Message = kube.Shorten(condition.Message, maxConditionMessageBytes)
			conditions = append(conditions, condition)
		}
	}
	claims, leftOut, rejected := l.validateClaims(cluster.Status.ClusterClaims)
	if len(rejected) == 0 {
		rejected = Rejected(cluster) // if it was trimmed before
	}
	version, problem := validateVersion(cluster.Status.Version.Kubernetes)
	if problem != "" {
		leftOut = append(leftOut, problem)
	}
	trimmed = &clusterv1.ManagedCluster{
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
	labels, unfit := l.validateLabels(claims)
	for _, problem := range unfit {
		if !slices.Contains(leftOut, problem) { // as it is if the cluster was trimmed before
			leftOut = append(leftOut, problem)
		}
	}
	rememberLeftOut(trimmed, leftOut)
	rememberLabels(trimmed, labels)
	rememberRejected(trimmed, rejected)
	keepRegistries(trimmed, cluster)
	keepDisplayName(trimmed, cluster)
	return trimmed, leftOutOf(trimmed)
}
