package routes

import (
	"maps"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
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

// lean is what remains of it for most kinds, with the labels that are read.
func lean(labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "n", Namespace: "ns", UID: "u",
		ResourceVersion: "1", Generation: 2, Labels: labels}
}

// labelled is fat with more labels.
func labelled(labels map[string]string) metav1.ObjectMeta {
	meta := fat()
	maps.Copy(meta.Labels, labels)
	return meta
}

func TestCacheKeepsOnlyWhatIsRead(t *testing.T) {
	namespace := kube.Partial(kube.NamespaceKind)
	namespace.ObjectMeta = fat()
	leanNamespace := kube.Partial(kube.NamespaceKind)
	leanNamespace.ObjectMeta = lean(nil)
	leanNamespace.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
	const publish = "inventory.open-cluster-management.io/publish"
	slice := map[string]string{
		"cluster.open-cluster-management.io/placement":            "p",
		"cluster.open-cluster-management.io/decision-group-index": "0",
		"cluster.open-cluster-management.io/decision-group-name":  "canary",
	}

	tests := map[string]struct{ in, want client.Object }{
		"ManagedClusterSet": {
			in: &clusterv1beta2.ManagedClusterSet{
				ObjectMeta: fat(), Spec: ocmtest.ExclusiveSet("").Spec,
				Status: clusterv1beta2.ManagedClusterSetStatus{Conditions: []metav1.Condition{ocmtest.Condition("A",
					"True", "R", "")}},
			},
			want: &clusterv1beta2.ManagedClusterSet{ObjectMeta: lean(nil), Spec: ocmtest.ExclusiveSet("").Spec},
		},
		"Placement": {
			in: &clusterv1beta1.Placement{
				ObjectMeta: labelled(map[string]string{publish: "true"}),
				Spec:       clusterv1beta1.PlacementSpec{ClusterSets: []string{"s"}},
				Status: clusterv1beta1.PlacementStatus{NumberOfSelectedClusters: 3,
					DecisionGroups: []clusterv1beta1.DecisionGroupStatus{{}}},
			},
			want: &clusterv1beta1.Placement{ObjectMeta: lean(map[string]string{publish: "true"}),
				Status: clusterv1beta1.PlacementStatus{NumberOfSelectedClusters: 3}},
		},
		"PlacementDecision": {
			in: &clusterv1beta1.PlacementDecision{
				ObjectMeta: labelled(slice),
				Status: clusterv1beta1.PlacementDecisionStatus{
					Decisions: []clusterv1beta1.ClusterDecision{{ClusterName: "c", Reason: "R", Score: 5}},
				},
			},
			want: &clusterv1beta1.PlacementDecision{ObjectMeta: lean(slice), Status: clusterv1beta1.PlacementDecisionStatus{
				Decisions: []clusterv1beta1.ClusterDecision{{ClusterName: "c"}},
			}},
		},
		"ManagedClusterSetBinding": {
			in: &clusterv1beta2.ManagedClusterSetBinding{
				ObjectMeta: labelled(map[string]string{publish: "false"}),
				Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
				Status: clusterv1beta2.ManagedClusterSetBindingStatus{Conditions: []metav1.Condition{
					ocmtest.Condition("Other", "True", "R", "text"), ocmtest.Condition("Bound", "False", "R", "text"),
				}},
			},
			want: &clusterv1beta2.ManagedClusterSetBinding{
				ObjectMeta: lean(map[string]string{publish: "false"}),
				Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
				Status: clusterv1beta2.ManagedClusterSetBindingStatus{
					Conditions: []metav1.Condition{{Type: "Bound", Status: "False"}},
				},
			},
		},
		"Namespace: the requirement": {in: namespace, want: leanNamespace},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			transformed := false
			for kind, options := range CacheOptions() {
				if !sameKind(kind, test.in) {
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

func sameKind(a, b client.Object) bool {
	if _, ok := a.(*corev1.Namespace); ok {
		return b.GetObjectKind().GroupVersionKind() == kube.NamespaceKind
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) &&
		a.GetObjectKind().GroupVersionKind() == b.GetObjectKind().GroupVersionKind()
}
