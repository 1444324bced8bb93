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
// missing object.
func IsRefusal(err error) bool {
	return IsPermanent(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err) || apierrors.IsUnsupportedMediaType(err)
}

// IsPermanent reports whether the API server refused the content of a request: it is
// invalid or too large. The same request fails again unless a CRD or an admission policy
// changes, so it need not be retried soon.
func IsPermanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || isTooLargeForEtcd(err)
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
