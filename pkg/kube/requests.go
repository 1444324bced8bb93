package kube

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sooner returns the shorter of two waits; zero means no wait at all.
func Sooner(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	default:
		return min(a, b)
	}
}

// ConditionChanged reports whether a condition's status, reason or message
// differs between two lists, or only one of them has it.
func ConditionChanged(before, after []metav1.Condition, conditionType string) bool {
	b, a := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
	if b == nil || a == nil {
		return b != a
	}
	return b.Status != a.Status || b.Reason != a.Reason || b.Message != a.Message
}

// StatusOf returns the status of the condition of a type, or "" if a list has none.
func StatusOf(conditions []metav1.Condition, conditionType string) metav1.ConditionStatus {
	if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil {
		return condition.Status
	}
	return ""
}
