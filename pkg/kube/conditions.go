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

// WriteCondition patches one condition of an object whose status has the given
// conditions, and notes in expectations what the API server answered; it makes no
// request if they say so already. changed is true when it was written. now, to the second,
// becomes the transition time if the condition's status is another. An object that is gone has
// no conditions to write, which is no error.
func WriteCondition(ctx context.Context, c client.Client, obj client.Object, conditions []metav1.Condition, want metav1.Condition, owner client.FieldOwner, expectations *Expectations, now time.Time) (changed bool, err error) {
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
