package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestErrorsAreClassified(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	etcd := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError,
		Message: "etcdserver: request is too large"}}
	tests := map[string]struct {
		err              error
		refusal, missing bool
	}{
		"none":                       {},
		"the network":                {err: errors.New("connection refused")},
		"a conflict":                 {err: apierrors.NewConflict(secrets, "s", nil)},
		"a credential that expired":  {err: apierrors.NewUnauthorized("expired")},
		"an object that is gone":     {err: apierrors.NewNotFound(secrets, "s")},
		"an object that is there":    {err: apierrors.NewAlreadyExists(secrets, "s")},
		"a version that is gone":     {err: apierrors.NewResourceExpired("old")},
		"too many requests":          {err: apierrors.NewTooManyRequests("later", 1)},
		"a server that is not ready": {err: apierrors.NewServiceUnavailable("later")},
		"a server that fails":        {err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"a server that is slow":      {err: apierrors.NewTimeoutError("slow", 1)},
		"a gateway that fails": {err: apierrors.NewGenericServerResponse(http.StatusBadGateway,
			"POST", secrets, "s", "bad", 0, true)},
		"forbidden": {err: apierrors.NewForbidden(secrets, "s", errors.New("quota")), refusal: true},
		"forbidden, wrapped": {err: fmt.Errorf("creating: %w",
			apierrors.NewForbidden(secrets, "s", errors.New("quota"))), refusal: true},
		"a request that is no good": {err: apierrors.NewBadRequest("what"), refusal: true},
		"invalid":                   {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", nil), refusal: true},
		"too large":                 {err: apierrors.NewRequestEntityTooLargeError("limit"), refusal: true},
		"too large for etcd":        {err: fmt.Errorf("creating: %w", etcd), refusal: true},
		"a namespace that is gone": {err: fmt.Errorf("creating: %w",
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n")), missing: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsRefusal(test.err); got != test.refusal {
				t.Errorf("a refusal: %t, want %t", got, test.refusal)
			}
			if got := IsNamespaceMissing(test.err); got != test.missing {
				t.Errorf("the namespace is missing: %t, want %t", got, test.missing)
			}
		})
	}
}

func TestIgnoreGone(t *testing.T) {
	profiles := schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "clusterprofiles"}
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "DELETE", profiles, "c", "404 page not found", 0, true)
	for name, test := range map[string]struct {
		err  error
		gone bool
	}{
		"no error":              {nil, false},
		"no object":             {apierrors.NewNotFound(profiles, "c"), true},
		"no object, wrapped":    {fmt.Errorf("deleting: %w", apierrors.NewNotFound(profiles, "c")), true},
		"the kind is not there": {unserved, false},
		"another error":         {apierrors.NewConflict(profiles, "c", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.err
			if test.gone {
				want = nil
			}
			if got := IgnoreGone(test.err); !errors.Is(got, want) || IsGone(test.err) != test.gone {
				t.Errorf("%v; gone is %t", got, IsGone(test.err))
			}
		})
	}
}
