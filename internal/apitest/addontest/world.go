// Package addontest is the hub of the tests of package addon and of its folders.
package addontest

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

// World is a hub, with a record of every request.
type World struct {
	*apitest.World
	Wire *apitest.Wire
}

// New returns a server's hub.
func New(t testing.TB, server *apitest.Server) *World {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1beta1.Install, clusterv1.Install, workv1.Install,
	} {
		apitest.Must(t, add(scheme))
	}
	wire := &apitest.Wire{}
	return &World{World: apitest.NewWorld(t, wire.Tap(server.Config(t)), scheme), Wire: wire}
}

// Addon creates a cluster's addon in a fresh cluster namespace.
func (w *World) Addon(finalizers ...string) *addonv1beta1.ManagedClusterAddOn {
	w.T.Helper()
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace("cluster", nil), Name: "cluster-inventory", Finalizers: finalizers,
	}}
	w.MustCreate(addon)
	return addon
}

// Cluster creates a ManagedCluster whose Available condition was set just now, or
// is missing if the status is empty.
func (w *World) Cluster(name string, available metav1.ConditionStatus, finalizers ...string) *clusterv1.ManagedCluster {
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
