package routes

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
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
	// under the one value Published.
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
	{&clusterv1.ManagedCluster{}, IndexClusterBySet, byLabel(clusterv1beta2.ClusterSetLabel)},
	{&clusterv1beta2.ManagedClusterSet{}, IndexSetByLabelSelector, kube.Indexed(bySelector)},
	{&clusterv1beta2.ManagedClusterSetBinding{}, IndexBindingBySet, kube.Indexed(bySet)},
	{&clusterv1beta1.Placement{}, IndexPublishingPlacement, kube.Indexed(byPublishing)},
	{&clusterv1beta1.PlacementDecision{}, IndexDecisionByPlacement, kube.Indexed(byPlacement)},
	{&clusterv1beta1.PlacementDecision{}, IndexDecisionByCluster, kube.Indexed(byCluster)},
	{&clusterv1.ManagedCluster{}, IndexClusterByMemberID, byLabel(contract.LabelInventoryMemberID)},
	{&inventoryv1alpha1.ClusterProfile{}, IndexProfileByMemberID, kube.Indexed(byOurMemberID)},
	{&inventoryv1alpha1.ClusterProfile{}, IndexProfileByName, kube.Indexed(byName)},
}

func byLabel(key string) client.IndexerFunc {
	return kube.Indexed(func(obj client.Object) []string { return []string{obj.GetLabels()[key]} })
}

func byName(obj client.Object) []string { return []string{obj.GetName()} }

func bySelector(set *clusterv1beta2.ManagedClusterSet) []string {
	if rule.IsExclusive(set) {
		return nil
	}
	return []string{selectsByLabels}
}

func bySet(binding *clusterv1beta2.ManagedClusterSetBinding) []string {
	return []string{binding.Spec.ClusterSet}
}

func byPublishing(placement *clusterv1beta1.Placement) []string {
	if !rule.Publishes(placement) {
		return nil
	}
	return []string{Published}
}

func byPlacement(decision *clusterv1beta1.PlacementDecision) []string {
	return []string{rule.PlacementOf(decision)}
}

func byCluster(decision *clusterv1beta1.PlacementDecision) []string {
	if rule.PlacementOf(decision) == "" {
		return nil
	}
	return rule.DecidedClusters(decision)
}

func byOurMemberID(profile *inventoryv1alpha1.ClusterProfile) []string {
	return []string{rule.MemberIDHeldBy(profile)}
}
