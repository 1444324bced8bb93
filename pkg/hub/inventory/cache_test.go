package inventory

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// fat is metadata with all that is read and all that is not.
func fat() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "1", Generation: 2,
		Labels:          map[string]string{"l": "1"},
		Annotations:     map[string]string{"inventory.open-cluster-management.io/require-placement": "true", "other": "x"},
		Finalizers:      []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
}

// lean is what remains of it for most kinds.
func lean() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "1", Generation: 2, Labels: map[string]string{"l": "1"}}
}

func TestTheCacheKeepsWhatIsReadAndNoMore(t *testing.T) {
	tests := map[string]struct{ in, want client.Object }{
		"ManagedCluster": {
			in: &clusterv1.ManagedCluster{
				ObjectMeta: fat(),
				Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60, Taints: []clusterv1.Taint{{Key: "k"}}},
				Status: clusterv1.ManagedClusterStatus{
					Conditions: []metav1.Condition{
						ocmtest.Condition("HubAcceptedManagedCluster", "True", "R", ""), ocmtest.Condition("ManagedClusterJoined", "True", "R", ""),
						ocmtest.Condition("ManagedClusterConditionAvailable", "True", "R", ""),
					},
					Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1"},
					ClusterClaims: []clusterv1.ManagedClusterClaim{claim("a", "1")},
					Capacity:      clusterv1.ResourceList{},
				},
			},
			want: &clusterv1.ManagedCluster{
				ObjectMeta: lean(),
				Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
				Status: clusterv1.ManagedClusterStatus{
					Conditions: []metav1.Condition{
						ocmtest.Condition("ManagedClusterConditionAvailable", "True", "R", ""), ocmtest.Condition("ManagedClusterJoined", "True", "R", ""),
					},
					Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1"},
					ClusterClaims: []clusterv1.ManagedClusterClaim{claim("a", "1")},
				},
			},
		},
		"ManagedClusterAddOn: every condition, since the list is written as a whole": {
			in: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: fat(), Status: addonv1beta1.ManagedClusterAddOnStatus{
				Namespace: "x", Conditions: []metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")},
			}},
			want: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: lean(), Status: addonv1beta1.ManagedClusterAddOnStatus{
				Conditions: []metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")},
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			transformed := false
			for kind, options := range CacheOptions() {
				if reflect.TypeOf(kind) != reflect.TypeOf(test.in) {
					continue
				}
				transformed = true
				got, err := options.Transform(test.in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("cached (-want +got):\n%s", diff)
				}
				again, err := options.Transform(got)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, again); diff != "" {
					t.Errorf("transformed twice (-want +got):\n%s", diff)
				}
			}
			if !transformed {
				t.Error("the kind has no cache options")
			}
		})
	}
}
