package profiles

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// IsUrgent reports whether a change of a profile's status must not wait for its budget:
// whether the cluster is healthy and joined, or how it is reached. A condition's reason and
// message say nothing more about that, and a spoke may change them as often as it likes.
func IsUrgent(current, desired *inventoryv1alpha1.ClusterProfile) bool {
	if !apiequality.Semantic.DeepEqual(current.Status.AccessProviders, desired.Status.AccessProviders) {
		return true
	}
	for _, shown := range profileConditions {
		if statusOf(current, shown.target) != statusOf(desired, shown.target) {
			return true
		}
	}
	return false
}

// statusOf returns the status of a profile's condition, or "" if it has none of that type.
func statusOf(profile *inventoryv1alpha1.ClusterProfile, conditionType string) metav1.ConditionStatus {
	if condition := meta.FindStatusCondition(profile.Status.Conditions, conditionType); condition != nil {
		return condition.Status
	}
	return ""
}
