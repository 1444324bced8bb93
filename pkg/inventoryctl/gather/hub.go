package gather

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// pageSize is how many objects one request returns by default, as in kubectl.
const pageSize = 500

// kinds are all kinds that are ever read, each in the one version that is read. They need
// no discovery, which would cost requests and time.
var kinds = []struct {
	kind     schema.GroupVersionKind
	resource string
	scope    meta.RESTScope
}{
	{corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", meta.RESTScopeRoot},
	{eventsv1.SchemeGroupVersion.WithKind("Event"), "events", meta.RESTScopeNamespace},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", meta.RESTScopeNamespace},
	{coordinationv1.SchemeGroupVersion.WithKind("Lease"), "leases", meta.RESTScopeNamespace},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "clusterroles", meta.RESTScopeRoot},
	{
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), "validatingadmissionpolicies",
		meta.RESTScopeRoot,
	},
	{
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		"validatingadmissionpolicybindings", meta.RESTScopeRoot,
	},
	{
		authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), "selfsubjectaccessreviews",
		meta.RESTScopeRoot,
	},
	{
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "customresourcedefinitions",
		meta.RESTScopeRoot,
	},
	{schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"), "managedclusters", meta.RESTScopeRoot},
	{
		schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind("ManagedClusterSet"), "managedclustersets",
		meta.RESTScopeRoot,
	},
	{
		schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind("ManagedClusterSetBinding"), "managedclustersetbindings",
		meta.RESTScopeNamespace,
	},
	{schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"), "placements", meta.RESTScopeNamespace},
	{
		schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("PlacementDecision"), "placementdecisions",
		meta.RESTScopeNamespace,
	},
	{
		schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"), "managedclusteraddons",
		meta.RESTScopeNamespace,
	},
	{
		schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ClusterManagementAddOn"), "clustermanagementaddons",
		meta.RESTScopeRoot,
	},
	{
		schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("AddOnDeploymentConfig"), "addondeploymentconfigs",
		meta.RESTScopeNamespace,
	},
	{inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile"), "clusterprofiles", meta.RESTScopeNamespace},
	{authv1beta1.GroupVersion.WithKind("ManagedServiceAccount"), "managedserviceaccounts", meta.RESTScopeNamespace},
}

// Hub is a hub as its reader sees it.
type Hub struct {
	reader client.WithWatch

	// Host is the address of its API server, for messages.
	Host string

	// PageSize is how many objects one request returns.
	PageSize int64

	// version is the resource version of the last page that was read, from which to watch.
	version string

	// Progress, unless nil, receives how many objects of a kind have been read.
	Progress func(kind string, count int)
}

// New returns the hub of a configuration. It sends no request.
func New(cfg *rest.Config) (*Hub, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the API server limits requests, which are sent one after the other
	cfg.WarningHandler = rest.NoWarnings{}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds {
		resource := k.kind.GroupVersion().WithResource(k.resource)
		mapper.AddSpecific(k.kind, resource, resource, k.scope)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: newScheme(), Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Hub{reader: c, Host: cfg.Host, PageSize: pageSize}, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme,
		appsv1.AddToScheme,
		coordinationv1.AddToScheme,
		eventsv1.AddToScheme,
		rbacv1.AddToScheme,
		admissionregistrationv1.AddToScheme,
		authorizationv1.AddToScheme,
		apiextensionsv1.AddToScheme,
		addonv1beta1.Install,
		clusterv1.Install,
		clusterv1beta1.Install,
		clusterv1beta2.Install,
		authv1beta1.AddToScheme,
		inventoryv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// UnservedError says that the hub does not serve a kind.
type UnservedError struct {
	Kind string
	Err  error
}

// Error returns one line.
func (e *UnservedError) Error() string { return "the hub does not serve " + e.Kind }

// Unwrap returns the API server's error.
func (e *UnservedError) Unwrap() error { return e.Err }

// each calls take with every object of a kind that the options select. hidden is true if
// the reader may not list them; then take is not called.
func each[T any, L client.ObjectList](
	ctx context.Context, h *Hub, kind string, newPage func() L, items func(L) []T, take func(*T),
	opts ...client.ListOption,
) (hidden bool, err error) {
	count := 0
	err = kube.EachPage(ctx, h.reader, h.PageSize, newPage, func(page L) error {
		list := items(page)
		h.version = page.GetResourceVersion()
		for i := range list {
			take(&list[i])
		}
		if count += len(list); h.Progress != nil {
			h.Progress(kind, count)
		}
		return nil
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

// get reads one object into obj. found is false if it does not exist, hidden is true if the
// reader may not read it.
func (h *Hub) get(
	ctx context.Context, kind, namespace, name string, obj client.Object,
) (found, hidden bool, err error) {
	err = h.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	switch {
	case err == nil:
		return true, false, nil
	case apierrors.IsForbidden(err):
		return false, true, nil
	case kube.IsUnserved(err):
		return false, false, &UnservedError{Kind: kind, Err: err}
	case apierrors.IsNotFound(err):
		return false, false, nil
	default:
		return false, false, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
}

// read is get for an object that is nil if it is absent or hidden.
func read[T any, P interface {
	*T
	client.Object
}](ctx context.Context, h *Hub, kind, namespace, name string) (obj P, hidden bool, err error) {
	obj = P(new(T))
	found, hidden, err := h.get(ctx, kind, namespace, name, obj)
	if !found {
		obj = nil
	}
	return obj, hidden, err
}

// MayList reports whether the reader may list a resource, in one namespace or, if it is
// empty, in all.
func (h *Hub) MayList(ctx context.Context, resource schema.GroupResource, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "list", Group: resource.Group, Resource: resource.Resource,
		},
	}}
	if err := h.reader.Create(ctx, review); err != nil {
		return false, fmt.Errorf("checking what you may read: %w", err)
	}
	return review.Status.Allowed, nil
}

// Namespace reports whether a namespace exists. It returns true if the reader may not know.
func (h *Hub) Namespace(ctx context.Context, name string) (bool, error) {
	found, hidden, err := h.get(ctx, "Namespaces", "", name, kube.Partial(kube.NamespaceKind))
	return found || hidden, err
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
