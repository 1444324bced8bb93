package inventory

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
)

// Managed fields are kept where they contain more than the annotation.
func TestCacheKeepsWhatIdentifiesCopiedLabels(t *testing.T) {
	const list = "inventory.open-cluster-management.io/copied-labels"
	record := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:env":{}}}}`),
		}
	}
	tests := map[string]struct {
		labels, annotations map[string]string
		kept                bool
	}{
		"no label but ours":     {},
		"every label is listed": {labels: map[string]string{"env": "x"}, annotations: map[string]string{list: "env"}},
		"a label is not listed": {labels: map[string]string{"env": "x"}, kept: true},
		"another label is not listed": {labels: map[string]string{"env": "x", "zone": "y"},
			annotations: map[string]string{list: "env"}, kept: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			profile := ocmtest.OurProfile("ns", "c")
			maps.Copy(profile.Labels, test.labels)
			profile.Annotations = test.annotations
			profile.ManagedFields = []metav1.ManagedFieldsEntry{record("kubectl", ""),
				record("hub.inventory", "status"), record("hub.inventory", "")}
			var want []metav1.ManagedFieldsEntry
			if test.kept {
				want = profile.ManagedFields[2:]
			}
			for range 2 {
				if diff := cmp.Diff(want, profiles.Trim(profile).ManagedFields, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("record (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestCacheKeepsOnlyWhatIsRead(t *testing.T) {
	limits := profiles.Limits{Properties: 2, PropertyBytes: 20}
	ocmtest.CheckCached(t, CacheOptions(limits), map[string]ocmtest.Cached{
		"ManagedCluster": {
			In: &clusterv1.ManagedCluster{
				ObjectMeta: ocmtest.Full(nil),
				Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true,
					LeaseDurationSeconds: 60, Taints: []clusterv1.Taint{{Key: "k"}}},
				Status: clusterv1.ManagedClusterStatus{
					Conditions: []metav1.Condition{
						ocmtest.Condition("HubAcceptedManagedCluster", "True", "R", ""),
						ocmtest.Condition("ManagedClusterJoined", "True", "R", ""),
						ocmtest.Condition("ManagedClusterConditionAvailable", "True", "R", ""),
					},
					Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1"},
					ClusterClaims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1")},
					Capacity:      clusterv1.ResourceList{},
				},
			},
			Want: &clusterv1.ManagedCluster{
				ObjectMeta: ocmtest.Lean(map[string]string{"l": "1"}),
				Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
				Status: clusterv1.ManagedClusterStatus{
					Conditions: []metav1.Condition{
						ocmtest.Condition("ManagedClusterConditionAvailable", "True", "R", ""),
						ocmtest.Condition("ManagedClusterJoined", "True", "R", ""),
					},
					Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1"},
					ClusterClaims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1")},
				},
			},
		},
		"ManagedCluster: registries that are too long are not kept": {
			In: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				"open-cluster-management.io/image-registries": strings.Repeat("r", 16385),
			}}},
			Want: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				"open-cluster-management.io/image-registries": "too long",
			}}},
		},
		"ManagedCluster: what a spoke sent is cut down, and it is remembered that it was": {
			In: &clusterv1.ManagedCluster{
				ObjectMeta: func() metav1.ObjectMeta {
					meta := ocmtest.Full(nil)
					meta.Annotations["open-cluster-management.io/image-registries"] = "{}"
					return meta
				}(),
				Status: clusterv1.ManagedClusterStatus{
					Conditions: []metav1.Condition{ocmtest.Condition("ManagedClusterJoined",
						"True", "R", "a\n"+strings.Repeat("m", 5000))},
					Version: clusterv1.ManagedClusterVersion{Kubernetes: strings.Repeat("v", 65)},
					ClusterClaims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("c", "3"),
						ocmtest.Claim("b", "2"), ocmtest.Claim("x\n", "4"), ocmtest.Claim("a", "1")},
				},
			},
			Want: &clusterv1.ManagedCluster{
				ObjectMeta: func() metav1.ObjectMeta {
					meta := ocmtest.Lean(map[string]string{"l": "1"})
					meta.Annotations = map[string]string{
						"inventory.open-cluster-management.io/left-out": `"x\n" has a name with unprintable characters` + "\n" +
							`1 of 3 claims, from "c" on: a profile has at most 2, with 20 bytes in all` + "\n" +
							"the Kubernetes version has 65 bytes, more than 64",
						"inventory.open-cluster-management.io/rejected": "Name=1,Limit=1",
						"open-cluster-management.io/image-registries":   "{}",
					}
					return meta
				}(),
				Status: clusterv1.ManagedClusterStatus{
					Conditions: []metav1.Condition{ocmtest.Condition("ManagedClusterJoined",
						"True", "R", `a\n`+strings.Repeat("m", 1018)+"...")},
					ClusterClaims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1"), ocmtest.Claim("b", "2")},
				},
			},
		},
	})
}

// profileOf is a profile of a cluster manager, with all that is read and all that is
// not.
func profileOf(manager string) *inventoryv1alpha1.ClusterProfile {
	profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: ocmtest.Full(nil)}
	profile.Annotations = map[string]string{"inventory.open-cluster-management.io/copied-labels": "l", "other": "x"}
	profile.Spec = inventoryv1alpha1.ClusterProfileSpec{
		DisplayName: "d", ClusterManager: inventoryv1alpha1.ClusterManager{Name: manager},
	}
	provider := inventoryv1alpha1.AccessProvider{Name: "theirs", Cluster: clientcmdv1.Cluster{
		Server: "https://x", Extensions: []clientcmdv1.NamedExtension{{Name: "e"}},
	}}
	profile.Status = inventoryv1alpha1.ClusterProfileStatus{
		Version:             inventoryv1alpha1.ClusterVersion{Kubernetes: "v1"},
		Conditions:          []metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")},
		Properties:          []inventoryv1alpha1.Property{{Name: "a", Value: "1"}},
		AccessProviders:     []inventoryv1alpha1.AccessProvider{provider},
		CredentialProviders: []inventoryv1alpha1.CredentialProvider{provider},
	}
	return profile
}

func TestTrimProfile(t *testing.T) {
	trim := func(profile *inventoryv1alpha1.ClusterProfile) client.Object {
		t.Helper()
		return profiles.Trim(profiles.Trim(profile)) // an object may be transformed twice
	}
	t.Run("ours: lists that a patch replaces stay complete", func(t *testing.T) {
		want := profileOf("open-cluster-management")
		want.ObjectMeta = ocmtest.Lean(map[string]string{"l": "1"})
		want.Annotations = map[string]string{"inventory.open-cluster-management.io/copied-labels": "l"}
		want.Status.CredentialProviders = nil
		want.ManagedFields = []metav1.ManagedFieldsEntry{{
			Subresource: "authorship", FieldsV1: metav1.NewFieldsV1(`["a"]`),
		}}
		if diff := cmp.Diff(want, trim(profileOf("open-cluster-management"))); diff != "" {
			t.Errorf("cached (-want +got):\n%s", diff)
		}
	})
	t.Run("ours, being deleted: finalizers are reported", func(t *testing.T) {
		profile, now := profileOf("open-cluster-management"), metav1.Now()
		profile.DeletionTimestamp = &now
		if diff := cmp.Diff([]string{"f"}, trim(profile).GetFinalizers()); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
	})
	t.Run("another manager's: whose it is", func(t *testing.T) {
		want := &inventoryv1alpha1.ClusterProfile{ObjectMeta: ocmtest.Lean(map[string]string{"l": "1"})}
		want.Labels = nil
		want.Spec.ClusterManager.Name = "another"
		if diff := cmp.Diff(want, trim(profileOf("another"))); diff != "" {
			t.Errorf("cached (-want +got):\n%s", diff)
		}
	})
}
