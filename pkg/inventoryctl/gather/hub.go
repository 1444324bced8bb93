package gather

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/kinds"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Hub is a hub as its reader sees it.
type Hub struct {
	reader   client.WithWatch
	pageSize int64

	// Host is the address of its API server, for messages.
	Host string

	// version is the resource version of the last page that was read, from which to watch.
	version string

	// Progress, unless nil, receives how many objects of a kind have been read.
	Progress func(kind string, count int)
}

// New returns the hub of a configuration. A request lists up to pageSize objects, or all of them if that is 0. New
// itself sends none.
func New(cfg *rest.Config, pageSize int64) (*Hub, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the API server limits requests, which are sent one after the other
	cfg.WarningHandler = rest.NoWarnings{}
	mapper, err := kinds.NewMapper(nil, nil)
	if err != nil {
		return nil, err
	}
	scheme := kinds.NewScheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Hub{reader: c, pageSize: pageSize, Host: cfg.Host}, nil
}

// UnservedError says that the hub does not serve a kind.
type UnservedError struct {
	Kind string
	Err  error
}

func (e *UnservedError) Error() string { return "the hub does not serve " + e.Kind }

func (e *UnservedError) Unwrap() error { return e.Err }

// each calls take with every object of the kind of an empty list that the options select. hidden is
// true if the reader may not list them; then take is not called.
func each[T client.Object](
	ctx context.Context, h *Hub, kind string, empty client.ObjectList, take func(T), opts ...client.ListOption,
) (hidden bool, err error) {
	count := 0
	newPage := func() client.ObjectList { return empty.DeepCopyObject().(client.ObjectList) }
	err = kube.EachPage(ctx, h.reader, h.pageSize, newPage, func(page client.ObjectList) error {
		h.version = page.GetResourceVersion()
		count += meta.LenList(page)
		err := meta.EachListItem(page, func(item runtime.Object) error {
			take(item.(T))
			return nil
		})
		if h.Progress != nil {
			h.Progress(kind, count)
		}
		return err
	}, opts...)
	switch {
	case err == nil:
		return false, nil
	case count == 0 && apierrors.IsForbidden(err):
		return true, nil
	case apierrors.IsNotFound(err): // a list is not found only if its kind is not served
		return false, &UnservedError{Kind: kind, Err: err}
	default:
		return false, fmt.Errorf("listing %s: %w", kind, err)
	}
}

// read reads one object into obj and returns it, or nil if it does not exist or is hidden: the reader may not
// read it.
func read[T client.Object](
	ctx context.Context, h *Hub, kind, namespace, name string, obj T,
) (found T, hidden bool, err error) {
	err = h.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	switch {
	case err == nil:
		return obj, false, nil
	case apierrors.IsForbidden(err):
		return found, true, nil
	case kube.IsUnserved(err):
		return found, false, &UnservedError{Kind: kind, Err: err}
	case apierrors.IsNotFound(err):
		return found, false, nil
	default:
		return found, false, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
}

// mayList reports whether the reader may list a resource in all namespaces.
func (h *Hub) mayList(ctx context.Context, group, resource string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: group, Resource: resource},
	}}
	if err := h.reader.Create(ctx, review); err != nil {
		return false, fmt.Errorf("checking what you may read: %w", err)
	}
	return review.Status.Allowed, nil
}

// Namespace reports whether a namespace exists. It returns true if the reader may not know.
func (h *Hub) Namespace(ctx context.Context, name string) (bool, error) {
	namespace, hidden, err := h.namespace(ctx, name)
	return namespace != nil || hidden, err
}

// mostNames is how many names of clusters are read to complete a command line.
const mostNames = 500

// ClusterNames returns names of clusters, up to 500: of those on the hub, or, for readers who may not
// list these, of those with a ClusterProfile in a namespace.
func (h *Hub) ClusterNames(ctx context.Context, namespace string) ([]string, error) {
	names, err := h.someNames(ctx, schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"), "")
	if apierrors.IsForbidden(err) {
		names, err = h.someNames(ctx, inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile"), namespace)
	}
	return names, err
}

func (h *Hub) someNames(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]string, error) {
	list := kube.PartialList(kind)
	if err := h.reader.List(ctx, list, client.InNamespace(namespace), client.Limit(mostNames)); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
