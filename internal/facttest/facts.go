// Package facttest has facts about a cluster with which all is well, for tests.
package facttest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// Now returns the time of all facts.
func Now() time.Time { return time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC) }

// Published returns facts of cluster "c" that is published in namespace "ns".
func Published() rule.Facts {
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
	return rule.Facts{
		Profile:   profile,
		Namespace: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		Cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: ocmtest.InSet("s")},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		Addon: addon,
		Bindings: []rule.Binding{{
			Set:     &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}},
			Binding: ocmtest.Binding("ns", "s"),
		}},
	}
}

// Account returns one whose token ends in an hour, to be copied to a namespace.
func Account(name, namespaces string) *authv1beta1.ManagedServiceAccount {
	ends := metav1.NewTime(Now().Add(time.Hour))
	return &authv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "c", Name: name,
			Labels:      map[string]string{"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"},
			Annotations: map[string]string{"inventory.open-cluster-management.io/sync-to-namespaces": namespaces},
		},
		Status: authv1beta1.ManagedServiceAccountStatus{
			ExpirationTimestamp: &ends,
			TokenSecretRef:      &authv1beta1.SecretRef{Name: name, LastRefreshTimestamp: metav1.NewTime(Now())},
		},
	}
}
