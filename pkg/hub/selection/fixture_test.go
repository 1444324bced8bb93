package selection

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// fakeCache is a cache of the given objects that has every index and every CRD but
// one.
type fakeCache struct {
	client.Client
	missingCRD *string
}

func newFakeCache(objs ...client.Object) fakeCache {
	b := fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(objs...).
		WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{})
	for _, index := range indexes {
		b = b.WithIndex(index.object, index.name, index.extract)
	}
	return fakeCache{Client: b.Build(), missingCRD: new(string)}
}

func (c fakeCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if crd, ok := obj.(*metav1.PartialObjectMetadata); ok && crd.GroupVersionKind() == kube.CRDKind {
		if key.Name == *c.missingCRD {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		crd.Name = key.Name
		return nil
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (fakeCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func (fakeCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, nil
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1beta1.Install, clusterv1.Install,
		clusterv1beta1.Install, clusterv1beta2.Install, inventoryv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

func addon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory"}}
}

func inSet(set string) map[string]string {
	return map[string]string{"cluster.open-cluster-management.io/clusterset": set}
}

func condition(conditionType, status, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
		LastTransitionTime: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func claim(name, value string) clusterv1.ManagedClusterClaim {
	return clusterv1.ManagedClusterClaim{Name: name, Value: value}
}

// slice is a slice of a Placement's decisions.
func slice(name, placement string, clusters ...string) *clusterv1beta1.PlacementDecision {
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: "1",
		Labels: map[string]string{"cluster.open-cluster-management.io/placement": placement},
	}}
	for _, cluster := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	return d
}
