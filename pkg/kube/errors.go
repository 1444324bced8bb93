package kube

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsRefusal reports whether the API server understood a request and refused it, so that a user
// has to act: the request was forbidden or invalid. Transient failures are not refusals: an
// error of the server or of a webhook, an expired credential, a conflict, a missing object.
// Refusals are retried all the same: the change that makes a request acceptable, for instance of
// an admission policy, often sends no event.
func IsRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsNotAcceptable(err) || apierrors.IsUnsupportedMediaType(err) ||
		apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || isTooLargeForEtcd(err)
}

// isTooLargeForEtcd recognizes etcd's limit, which the API server passes on as an
// error without a reason (k8s.io/apiserver, pkg/endpoints/handlers, isTooLargeError).
func isTooLargeForEtcd(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError &&
		strings.Contains(status.Status().Message, "etcdserver: request is too large")
}

// IsGone reports whether the API server says that an object does not exist. What it says of a kind
// that it does not serve is no such answer: the object may be there when the kind is served again.
func IsGone(err error) bool { return apierrors.IsNotFound(err) && !IsUnserved(err) }

// IsUnserved reports whether the API server does not serve the kind of an object: its router reports
// that, not the kind's handler.
func IsUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IgnoreGone returns an error unless it says that the object does not exist.
func IgnoreGone(err error) error {
	if IsGone(err) {
		return nil
	}
	return err
}

// IsNamespaceMissing reports whether a request failed because its namespace does not exist.
func IsNamespaceMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Group == "" && details.Kind == "namespaces"
}
