package routes

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// Indexes that map events to the pairs they concern.
const (
	// IndexClusterBySet finds ManagedClusters by their exclusive set's label.
	IndexClusterBySet = "selection.clusterBySet"

	// IndexSetByLabelSelector finds the ManagedClusterSets that select by anything but the
	// exclusive label: under the one value selectsByLabels.
	IndexSetByLabelSelector = "selection.setByLabelSelector"

	// IndexBindingBySet finds ManagedClusterSetBindings by the set they bind.
	IndexBindingBySet = "selection.bindingBySet"

	// IndexPublishingPlacement finds the Placements labelled for publishing:
	// under the one value published.
	IndexPublishingPlacement = "selection.publishingPlacement"

	// IndexDecisionByPlacement finds PlacementDecisions by their Placement.
	IndexDecisionByPlacement = "selection.decisionByPlacement"

	// IndexDecisionByCluster finds PlacementDecisions by every cluster in them.
	IndexDecisionByCluster = "selection.decisionByCluster"

	// IndexClusterByMemberID finds ManagedClusters by the member id that their label asks for.
	IndexClusterByMemberID = "selection.clusterByMemberID"

	// IndexProfileByMemberID finds this addon's ClusterProfiles by the member id that they have.
	IndexProfileByMemberID = "selection.profileByMemberID"

	// IndexProfileByName finds ClusterProfiles of all namespaces by their name,
	// which is the cluster's.
	IndexProfileByName = "selection.profileByName"
)

const (
	selectsByLabels = "true"

	// Published is the value of IndexPublishingPlacement, and of the label.
	Published = "true"
)

// ProfileIndexes is how many of indexes, at the end, need ClusterProfiles, which may be served
// late.
const ProfileIndexes = 2

// Indexes are all of the above.
var Indexes = []struct {
	Object  client.Object
	Name    string
	Extract client.IndexerFunc
}{
	{&clusterv1.ManagedCluster{}, IndexClusterBySet, indexClusterBySet},
	{&clusterv1beta2.ManagedClusterSet{}, IndexSetByLabelSelector, indexSetByLabelSelector},
	{&clusterv1beta2.ManagedClusterSetBinding{}, IndexBindingBySet, indexBindingBySet},
	{&clusterv1beta1.Placement{}, IndexPublishingPlacement, indexPublishingPlacement},
	{&clusterv1beta1.PlacementDecision{}, IndexDecisionByPlacement, indexDecisionByPlacement},
	{&clusterv1beta1.PlacementDecision{}, IndexDecisionByCluster, indexDecisionByCluster},
	{&clusterv1.ManagedCluster{}, IndexClusterByMemberID, indexByMemberID},
	{&inventoryv1alpha1.ClusterProfile{}, IndexProfileByMemberID, indexProfileByMemberID},
	{&inventoryv1alpha1.ClusterProfile{}, IndexProfileByName, indexProfileByName},
}

func indexClusterBySet(obj client.Object) []string {
	return nonEmpty(obj.GetLabels()[clusterv1beta2.ClusterSetLabel])
}

func indexSetByLabelSelector(obj client.Object) []string {
	if set, ok := obj.(*clusterv1beta2.ManagedClusterSet); ok && !rule.IsExclusive(set) {
		return []string{selectsByLabels}
	}
	return nil
}

func indexBindingBySet(obj client.Object) []string {
	if binding, ok := obj.(*clusterv1beta2.ManagedClusterSetBinding); ok {
		return nonEmpty(binding.Spec.ClusterSet)
	}
	return nil
}

func indexPublishingPlacement(obj client.Object) []string {
	if placement, ok := obj.(*clusterv1beta1.Placement); ok && rule.Publishes(placement) {
		return []string{Published}
	}
	return nil
}

func indexDecisionByPlacement(obj client.Object) []string {
	return nonEmpty(rule.PlacementOf(obj))
}

func indexDecisionByCluster(obj client.Object) []string {
	decision, ok := obj.(*clusterv1beta1.PlacementDecision)
	if !ok || rule.PlacementOf(decision) == "" {
		return nil
	}
	return rule.DecidedClusters(decision)
}

func indexByMemberID(obj client.Object) []string {
	return nonEmpty(obj.GetLabels()[contract.LabelInventoryMemberID])
}

func indexProfileByMemberID(obj client.Object) []string {
	if profile, ok := obj.(*inventoryv1alpha1.ClusterProfile); !ok || !rule.IsMarked(profile) {
		return nil
	}
	return indexByMemberID(obj)
}

func indexProfileByName(obj client.Object) []string {
	return []string{obj.GetName()}
}

func nonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
