package kube

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsRefusal reports whether the API server refused a request for a reason that
// retrying does not remove: somebody has to act.
func IsRefusal(err error) bool {
	switch {
	case apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err),
		apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err):
		return false
	default:
		return apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
	}
}
