package kube

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefusal reports whether the API server understood a request and refused it, so that
// somebody has to act: the request was forbidden or invalid. Transient failures are not
// refusals: an error of the server or of a webhook, an expired credential, a conflict, a
// missing object. Refusals are retried all the same: the change that makes a request acceptable,
// for instance of an admission policy, often sends no event.
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

// IsNamespaceMissing reports whether a request failed because its namespace does not exist.
func IsNamespaceMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Group == "" && details.Kind == "namespaces"
}
