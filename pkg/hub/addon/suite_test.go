package addon

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var hub = apitest.New(apitest.Hub())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

// newClient returns an uncached client of the hub, and what it sends.
func newClient(t *testing.T) (client.Client, *apitest.Wire) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addonv1beta1.Install, clusterv1.Install, workv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	wire := &apitest.Wire{}
	c, err := client.New(wire.Tap(hub.Config(t)), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, wire
}

func create[T client.Object](t *testing.T, c client.Client, object T) T {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// newAddon creates a cluster's addon in a fresh cluster namespace.
func newAddon(t *testing.T, c client.Client, finalizers ...string) *addonv1beta1.ManagedClusterAddOn {
	t.Helper()
	return create(t, c, &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: hub.Namespace(t, nil), Name: "cluster-inventory", Finalizers: finalizers,
	}})
}
