package routes

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestCacheKeepsOnlyWhatIsRead(t *testing.T) {
	namespace := kube.Partial(kube.NamespaceKind)
	namespace.ObjectMeta = ocmtest.Full(nil)
	leanNamespace := kube.Partial(kube.NamespaceKind)
	leanNamespace.ObjectMeta = ocmtest.Lean(nil)
	leanNamespace.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
	const publish = "inventory.open-cluster-management.io/publish"
	slice := map[string]string{
		"cluster.open-cluster-management.io/placement":            "p",
		"cluster.open-cluster-management.io/decision-group-index": "0",
		"cluster.open-cluster-management.io/decision-group-name":  "canary",
	}

	ocmtest.CheckCached(t, CacheOptions(), map[string]ocmtest.Cached{
		"ManagedClusterSet": {
			In: &clusterv1beta2.ManagedClusterSet{
				ObjectMeta: ocmtest.Full(nil), Spec: ocmtest.ExclusiveSet("").Spec,
				Status: clusterv1beta2.ManagedClusterSetStatus{Conditions: []metav1.Condition{ocmtest.Condition("A",
					"True", "R", "")}},
			},
			Want: &clusterv1beta2.ManagedClusterSet{ObjectMeta: ocmtest.Lean(nil), Spec: ocmtest.ExclusiveSet("").Spec},
		},
		"Placement": {
			In: &clusterv1beta1.Placement{
				ObjectMeta: ocmtest.Full(map[string]string{publish: "true"}),
				Spec:       clusterv1beta1.PlacementSpec{ClusterSets: []string{"s"}},
				Status: clusterv1beta1.PlacementStatus{NumberOfSelectedClusters: 3,
					DecisionGroups: []clusterv1beta1.DecisionGroupStatus{{}}},
			},
			Want: &clusterv1beta1.Placement{ObjectMeta: ocmtest.Lean(map[string]string{publish: "true"}),
				Status: clusterv1beta1.PlacementStatus{NumberOfSelectedClusters: 3}},
		},
		"PlacementDecision": {
			In: &clusterv1beta1.PlacementDecision{
				ObjectMeta: ocmtest.Full(slice),
				Status: clusterv1beta1.PlacementDecisionStatus{
					Decisions: []clusterv1beta1.ClusterDecision{{ClusterName: "c", Reason: "R", Score: 5}},
				},
			},
			Want: &clusterv1beta1.PlacementDecision{ObjectMeta: ocmtest.Lean(slice), Status: clusterv1beta1.PlacementDecisionStatus{
				Decisions: []clusterv1beta1.ClusterDecision{{ClusterName: "c"}},
			}},
		},
		"ManagedClusterSetBinding": {
			In: &clusterv1beta2.ManagedClusterSetBinding{
				ObjectMeta: ocmtest.Full(map[string]string{publish: "false"}),
				Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
				Status: clusterv1beta2.ManagedClusterSetBindingStatus{Conditions: []metav1.Condition{
					ocmtest.Condition("Other", "True", "R", "text"), ocmtest.Condition("Bound", "False", "R", "text"),
				}},
			},
			Want: &clusterv1beta2.ManagedClusterSetBinding{
				ObjectMeta: ocmtest.Lean(map[string]string{publish: "false"}),
				Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
				Status: clusterv1beta2.ManagedClusterSetBindingStatus{
					Conditions: []metav1.Condition{{Type: "Bound", Status: "False"}},
				},
			},
		},
		"Namespace: the requirement": {In: namespace, Want: leanNamespace},
	})
}
