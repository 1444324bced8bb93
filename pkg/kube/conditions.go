package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConditionPatch returns the patch of status.conditions that puts want into the
// given list and leaves every other entry as it is, or nil when the list already
// says so. The entry's transition time is kept while its status is the same and
// want's otherwise, which the caller sets.
//
// The list must be the one of the object at resourceVersion; the API server
// refuses the patch with a conflict if the object has changed since.
func ConditionPatch(resourceVersion string, conditions []metav1.Condition, want metav1.Condition) (client.Patch, error) {
	list := slices.Clone(conditions)
	if !meta.SetStatusCondition(&list, want) {
		return nil, nil
	}
	return MergePatch(resourceVersion, map[string]any{"status": map[string]any{"conditions": list}})
}
