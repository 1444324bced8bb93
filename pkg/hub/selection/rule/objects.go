package rule

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	clustersdkv1beta2 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// ProfileCRD is the name of the CRD of ClusterProfiles.
const ProfileCRD = "clusterprofiles.multicluster.x-k8s.io"

// CRDs of the kinds on which the rule rests.
const (
	ClusterCRD   = "managedclusters.cluster.open-cluster-management.io"
	SetCRD       = "managedclustersets.cluster.open-cluster-management.io"
	BindingCRD   = "managedclustersetbindings.cluster.open-cluster-management.io"
	PlacementCRD = "placements.cluster.open-cluster-management.io"
	DecisionCRD  = "placementdecisions.cluster.open-cluster-management.io"
	AddonCRD     = "managedclusteraddons.addon.open-cluster-management.io"
)

func requiresPlacement(namespace *metav1.PartialObjectMetadata) bool {
	return namespace.Annotations[contract.AnnotationRequirePlacement] == "true"
}

// Publishes reports whether a Placement is labeled for publishing.
func Publishes(placement *clusterv1beta1.Placement) bool {
	return placement.Labels[contract.LabelPublish] == "true"
}

// IsOlder reports whether a profile was created before its cluster (nil: none).
func IsOlder(profile *inventoryv1alpha1.ClusterProfile, cluster *clusterv1.ManagedCluster) bool {
	return cluster == nil || profile.CreationTimestamp.Before(&cluster.CreationTimestamp)
}

// IsOurs reports whether a profile names our cluster manager.
func IsOurs(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile.Spec.ClusterManager.Name == contract.ClusterManagerName
}

// IsMarked reports whether a profile was created or adopted by this addon.
func IsMarked(profile *inventoryv1alpha1.ClusterProfile) bool {
	return IsOurs(profile) && profile.Labels[contract.LabelManagedBy] == contract.ManagedBy
}

// SetSelector returns the selector of one set. OCM's helpers for all sets do not serve
// here: they give up at the first invalid one.
func SetSelector(set *clusterv1beta2.ManagedClusterSet) (labels.Selector, error) {
	return clustersdkv1beta2.BuildClusterSelector(set)
}

// PlacementOf names the Placement to which a slice belongs; "" if it belongs to none.
func PlacementOf(decision metav1.Object) string {
	return decision.GetLabels()[clusterv1beta1.PlacementLabel]
}

// PlacementKey returns the Placement to which a slice belongs.
func PlacementKey(decision metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: decision.GetNamespace(), Name: PlacementOf(decision)}
}

// DecidedClusters returns the clusters in a slice. OCM leaves entries without a name while
// it fills a slice.
func DecidedClusters(decision *clusterv1beta1.PlacementDecision) []string {
	names := make([]string, 0, len(decision.Status.Decisions))
	for _, d := range decision.Status.Decisions {
		if d.ClusterName != "" {
			names = append(names, d.ClusterName)
		}
	}
	return names
}

// IsExclusive reports whether a set's members are the clusters whose label names it.
func IsExclusive(set *clusterv1beta2.ManagedClusterSet) bool {
	selectorType := set.Spec.ClusterSelector.SelectorType
	return selectorType == "" || selectorType == clusterv1beta2.ExclusiveClusterSetLabel
}

// GroupOf returns the decision group of one of OCM's slices.
func GroupOf(decision *clusterv1beta1.PlacementDecision) Group {
	index, err := strconv.Atoi(decision.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	if err != nil || index < 0 {
		index = 0
	}
	return Group{Index: index, Name: decision.Labels[clusterv1beta1.DecisionGroupNameLabel]}
}

// IsGrouped reports whether a Placement has decision groups. OCM writes the labels of a slice
// after its clusters, so the slices alone do not show it.
func IsGrouped(placement *clusterv1beta1.Placement) bool {
	strategy := placement.Spec.DecisionStrategy.GroupStrategy
	size := strategy.ClustersPerDecisionGroup
	return len(strategy.DecisionGroups) > 0 || size != intstr.IntOrString{} && size != intstr.FromString("100%")
}
