package decide

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

var now = time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)

// published are facts of cluster "c" in namespace "ns", where all is well, changed as
// given.
func published(changes ...func(*PairFacts)) PairFacts {
	profile := ocmtest.OurProfile("ns", "c")
	profile.UID = "profile"
	profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "open-cluster-management"}}
	addon := ocmtest.Addon("c")
	addon.Status.Conditions = []metav1.Condition{
		ocmtest.Condition("Available", "True", "R", ""),
		ocmtest.Condition("ProfilesSynced", "True", "Synced", "s"),
		ocmtest.Condition("CredentialsSynced", "True", "Copied", "c"),
		ocmtest.Condition("PropertiesPublished", "True", "Published", "1 property published."),
	}
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	p := PairFacts{
		Namespace: "ns", Cluster: "c", Installation: Presence{Found: true}, Proxy: Presence{Found: true},
		Settings: settings.Default(),
		Facts: rule.Facts{
			Profile:   profile,
			Namespace: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
			Cluster: &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: ocmtest.InSet("s")},
				Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			},
			Addon: addon,
			Bindings: []rule.Binding{{Set: set, Binding: &clusterv1beta2.ManagedClusterSetBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
				Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
				Status: clusterv1beta2.ManagedClusterSetBindingStatus{
					Conditions: []metav1.Condition{ocmtest.Condition("Bound", "True", "R", "")},
				},
			}}},
		},
		Accounts: []*authv1beta1.ManagedServiceAccount{account("a", "ns")},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// account is one whose token ends in an hour, to be copied to a namespace.
func account(name, namespaces string) *authv1beta1.ManagedServiceAccount {
	ends := metav1.NewTime(now.Add(time.Hour))
	return &authv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "c", Name: name,
			Labels:      map[string]string{"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"},
			Annotations: map[string]string{"inventory.open-cluster-management.io/sync-to-namespaces": namespaces},
		},
		Status: authv1beta1.ManagedServiceAccountStatus{
			ExpirationTimestamp: &ends,
			TokenSecretRef:      &authv1beta1.SecretRef{Name: name, LastRefreshTimestamp: metav1.NewTime(now)},
		},
	}
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
