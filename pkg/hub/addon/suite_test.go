package addon

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var hub = apitest.New(apitest.Hub(), apitest.AgentRevision())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

// world is the hub, with a record of every request.
type world struct {
	*apitest.World
	wire *apitest.Wire
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, hub)
}

func newWorldOn(t testing.TB, server *apitest.Server) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1beta1.Install, clusterv1.Install, workv1.Install,
	} {
		apitest.Must(t, add(scheme))
	}
	wire := &apitest.Wire{}
	return &world{World: apitest.NewWorld(t, wire.Tap(server.Config(t)), scheme), wire: wire}
}

// addon creates a cluster's addon in a fresh cluster namespace.
func (w *world) addon(finalizers ...string) *addonv1beta1.ManagedClusterAddOn {
	w.T.Helper()
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace("cluster", nil), Name: "cluster-inventory", Finalizers: finalizers,
	}}
	w.MustCreate(addon)
	return addon
}

// cluster creates a ManagedCluster whose Available condition was set just now, or
// is missing if the status is empty.
func (w *world) cluster(name string, available metav1.ConditionStatus, finalizers ...string) *clusterv1.ManagedCluster {
	w.T.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
	w.MustCreate(cluster)
	if available != "" {
		apitest.EditStatus(w, cluster, func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = []metav1.Condition{{
				Type: "ManagedClusterConditionAvailable", Status: available, Reason: "Test", LastTransitionTime: metav1.Now(),
			}}
		})
	}
	return cluster
}
