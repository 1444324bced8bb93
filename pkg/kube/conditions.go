package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// WriteCondition patches one condition of an object whose status has the given
// conditions and records the result in expectations. It makes no request if the
// conditions already contain want; changed says whether it wrote. If the status
// of the condition changes, its transition time becomes now, truncated to the
// second. It is not an error if the object no longer exists.
func WriteCondition(
	ctx context.Context, c client.Client, obj client.Object, conditions []metav1.Condition, want metav1.Condition,
	owner client.FieldOwner, expectations *Expectations, now time.Time,
) (changed bool, err error) {
	want.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	patch, err := ConditionPatch(obj.GetResourceVersion(), conditions, want)
	if err != nil || patch == nil {
		return false, err
	}
	written := obj.DeepCopyObject().(client.Object)
	if err := c.Status().Patch(ctx, written, patch, owner); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("patching condition %s: %w", want.Type, err)
	}
	expectations.Wrote(written, now)
	return true, nil
}
