package decide

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/facttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

var now = facttest.Now()

// published are facts of cluster "c" in namespace "ns", where all is well, changed as
// given.
func published(changes ...func(*PairFacts)) PairFacts {
	p := PairFacts{
		Namespace: "ns", Cluster: "c",
		Installation: Object[addonv1beta1.ClusterManagementAddOn]{Object: &addonv1beta1.ClusterManagementAddOn{}},
		Proxy:        Object[addonv1beta1.ManagedClusterAddOn]{Object: &addonv1beta1.ManagedClusterAddOn{}},
		Settings:     settings.Default(), Facts: facttest.Published(),
		Accounts: []*authv1beta1.ManagedServiceAccount{facttest.Account("a", "ns")},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// without has no profile.
func without(p *PairFacts) { p.Facts.Profile = nil }

// says gives the addon a condition in place of the one it has.
func says(conditionType, status, reason, message string) func(*PairFacts) {
	return func(p *PairFacts) {
		conditions := p.Facts.Addon.Status.Conditions
		for i := range conditions {
			if conditions[i].Type == conditionType {
				conditions[i] = ocmtest.Condition(conditionType, status, reason, message)
			}
		}
	}
}

// placement is one that has decided for the clusters.
func placement(clusters ...string) []rule.Placement {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p", Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"},
	}}
	p.Status.NumberOfSelectedClusters = int32(len(clusters))
	p.Status.Conditions = []metav1.Condition{ocmtest.Condition("PlacementSatisfied", "True", "R", "")}
	d := clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p-1", Labels: map[string]string{"cluster.open-cluster-management.io/placement": "p"},
	}}
	for _, cluster := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	return rule.NewPlacements([]*clusterv1beta1.Placement{p}, []clusterv1beta1.PlacementDecision{d})
}
