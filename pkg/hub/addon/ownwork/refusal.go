package ownwork

import (
	"cmp"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxReasonBytes bounds how much of a spoke's report is repeated.
const maxReasonBytes = 300

// Refusal returns the message of the condition Applied, of a ManifestWork or of one
// of its manifests, if that is False, else "". It comes from the spoke.
func Refusal(conditions []metav1.Condition) string {
	condition := apimeta.FindStatusCondition(conditions, workv1.WorkApplied)
	if condition == nil || condition.Status != metav1.ConditionFalse {
		return ""
	}
	return kube.Shorten(cmp.Or(condition.Message, condition.Reason), maxReasonBytes)
}
