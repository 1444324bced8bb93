package selection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// fakeCache is a cache of the given objects that has every index and every CRD but
// one.
type fakeCache struct {
	client.Client
	missingCRD *string
	anewCRD    *string // has another UID than at first
	version    *string // that the informers have reached; empty if that cannot be compared
}

func newFakeCache(objs ...client.Object) fakeCache {
	b := fake.NewClientBuilder().WithScheme(ocmtest.Scheme()).WithObjects(objs...).
		WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{})
	for _, kind := range []client.Object{ // API servers select by name
		&clusterv1.ManagedCluster{}, &clusterv1beta2.ManagedClusterSet{}, &clusterv1beta1.Placement{},
		&addonv1beta1.ManagedClusterAddOn{}, &addonv1beta1.ClusterManagementAddOn{}, &corev1.Namespace{},
	} {
		b = b.WithIndex(kind, metav1.ObjectNameField, func(obj client.Object) []string { return []string{obj.GetName()} })
	}
	for _, index := range routes.Indexes {
		b = b.WithIndex(index.Object, index.Name, index.Extract)
	}
	return fakeCache{Client: b.Build(), missingCRD: new(string), anewCRD: new(string), version: new(string)}
}

func (c fakeCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if crd, ok := obj.(*metav1.PartialObjectMetadata); ok && crd.GroupVersionKind() == kube.CRDKind {
		if key.Name == *c.missingCRD {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		crd.Name, crd.UID = key.Name, "first"
		if key.Name == *c.anewCRD {
			crd.UID = "second"
		}
		return nil
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c fakeCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if partial, ok := list.(*metav1.PartialObjectMetadataList); ok && partial.Kind == "CustomResourceDefinitionList" {
		list.SetResourceVersion("7")
		return nil
	}
	return c.Client.List(ctx, list, opts...)
}

func (fakeCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func (c fakeCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return informerAt{version: c.version}, nil
}

// informerAt is an informer that has reached a resource version.
type informerAt struct {
	apitest.SyncedInformer
	version *string
}

func (i informerAt) GetStore() toolscache.Store { return apitest.StoreAt(*i.version) }

// nothing is what a controller remembers of no pair.
type nothing struct{}

func (nothing) All() []types.NamespacedName  { return nil }
func (nothing) NamespacesOf(string) []string { return nil }
func (nothing) ClustersIn(string) []string   { return nil }

func foundBy(requests []reconcile.Request) []string {
	var list []string
	for _, request := range requests {
		list = append(list, request.String())
	}
	slices.Sort(list)
	return list
}

func whyDoubtful(crd string) string {
	return "is left as it is: the CustomResourceDefinition " + crd +
		" is being deleted, missing or new, so missing objects may come back"
}
