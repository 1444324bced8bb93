package watch

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Kinds are kinds of custom resources by the names of their CRDs.
type Kinds map[string]schema.GroupVersionKind

// Discovery asks an API server what it serves, and remembers nothing.
type Discovery struct{ client rest.Interface }

// NewDiscovery returns a Discovery that shares the connections of an HTTP client.
func NewDiscovery(cfg *rest.Config, http *http.Client) (*Discovery, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, http)
	if err != nil {
		return nil, fmt.Errorf("making a client for discovery: %w", err)
	}
	return &Discovery{client.RESTClient()}, nil
}

// Serves reports whether the API server serves a custom resource's kind now, which it does a
// moment after the creation of its CRD.
func (d *Discovery) Serves(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	served := &metav1.APIResourceList{}
	err := d.client.Get().AbsPath("/apis", kind.Group, kind.Version).Do(ctx).Into(served)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking up %s: %w", kind, err)
	}
	return slices.ContainsFunc(served.APIResources, func(resource metav1.APIResource) bool {
		return resource.Kind == kind.Kind
	}), nil
}
