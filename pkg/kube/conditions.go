package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConditionPatch returns a patch of status.conditions that sets want in the given
// list and keeps every other entry, or nil if the list already contains want. The
// entry keeps its transition time unless its status changes; then it takes the
// time the caller has set in want.
//
// The list must be that of the object at resourceVersion: the API server refuses
// the patch with a conflict if the object has changed since.
func ConditionPatch(
	resourceVersion string, conditions []metav1.Condition, want metav1.Condition,
) (client.Patch, error) {
	list := slices.Clone(conditions)
	if !meta.SetStatusCondition(&list, want) {
		return nil, nil
	}
	return MergePatch(resourceVersion, map[string]any{"status": map[string]any{"conditions": list}})
}
