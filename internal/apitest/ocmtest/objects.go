package ocmtest

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Objects that exist only in memory.

// ClusterWith is a ManagedCluster with labels.
func ClusterWith(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// ForeignProfile is a ClusterProfile that this addon did not make.
func ForeignProfile(namespace, name string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// ExclusiveSet is a ManagedClusterSet of the clusters whose label names it.
func ExclusiveSet(name string) *clusterv1beta2.ManagedClusterSet {
	return setWith(name, clusterv1beta2.ManagedClusterSelector{SelectorType: "ExclusiveClusterSetLabel"})
}

// LabelSet is a ManagedClusterSet of the clusters that a selector matches.
func LabelSet(name string, selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
	return setWith(name, clusterv1beta2.ManagedClusterSelector{SelectorType: "LabelSelector", LabelSelector: selector})
}

func setWith(name string, selector clusterv1beta2.ManagedClusterSelector) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
	}
}

// InvalidSelector returns a selector that matches nothing, because it is invalid.
func InvalidSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Sometimes"}},
	}
}

// Binding is a bound ManagedClusterSetBinding.
func Binding(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
		Status: clusterv1beta2.ManagedClusterSetBindingStatus{
			Conditions: []metav1.Condition{Condition("Bound", "True", "R", "")},
		},
	}
}

// Publishing is a publishing Placement of the namespace ns, scheduled for so many clusters.
func Publishing(name string, clusters int) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"},
		},
		Status: clusterv1beta1.PlacementStatus{
			NumberOfSelectedClusters: int32(clusters), //nolint:gosec // a few
			Conditions:               []metav1.Condition{Condition("PlacementSatisfied", "True", "R", "")},
		},
	}
}

// Slice is a slice of the decisions of a Placement in the namespace ns.
func Slice(name, placement string, clusters ...string) *clusterv1beta1.PlacementDecision {
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: "1",
		Labels: map[string]string{"cluster.open-cluster-management.io/placement": placement},
	}}
	for _, cluster := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	return d
}

// Slices are all slices of a Placement's decisions as OCM writes them.
func Slices(placement string, clusters ...string) []clusterv1beta1.PlacementDecision {
	clusters = slices.Sorted(slices.Values(clusters))
	var all []clusterv1beta1.PlacementDecision
	for chunk := range slices.Chunk(clusters, 100) {
		all = append(all, *Slice(fmt.Sprintf("%s-decision-%d", placement, len(all)+1), placement, chunk...))
	}
	if len(all) == 0 {
		all = append(all, *Slice(placement+"-decision-1", placement))
	}
	return all
}

// Numbered returns the names c<from> to c<to>.
func Numbered(from, to int) []string {
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf("c%04d", i))
	}
	return names
}
