package profiles

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// IsUrgent reports whether a change of a profile's status must not wait for its budget:
// whether the cluster is healthy and joined, or how it is reached. A condition's reason and
// message say nothing more about that, and a spoke may change them as often as it likes.
func IsUrgent(current, desired *inventoryv1alpha1.ClusterProfile) bool {
	if !apiequality.Semantic.DeepEqual(current.Status.AccessProviders, desired.Status.AccessProviders) {
		return true
	}
	for _, shown := range profileConditions {
		if kube.StatusOf(current.Status.Conditions, shown.target) != kube.StatusOf(desired.Status.Conditions, shown.target) {
			return true
		}
	}
	return false
}
