package inventory

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
)

// Two hubs for stepped tests: ClusterProfiles as SIG-Multicluster defines them, and as
// Open Cluster Management does. Tests that run a manager use the third, which serves
// ClusterProfiles in v1alpha2, too, and leave it empty, since their managers act on
// everything there. So do those that delete and recreate CRDs on the fourth, and those in which
// another client writes profiles, too, on the others: the latter run at the same time.
var (
	mapHub      = apitest.New(apitest.Hub(), apitest.ClusterProfile())
	atomicHub   = apitest.New(apitest.Hub(), apitest.AtomicClusterProfile())
	wiredHub    = apitest.New(apitest.Hub(), apitest.ClusterProfileInTwoVersions(), apitest.ManagedProxyConfiguration())
	restoredHub = apitest.New(apitest.Hub(), apitest.ClusterProfile())

	applyHub      = apitest.New(apitest.Hub(), apitest.ClusterProfile())
	editHub       = apitest.New(apitest.Hub(), apitest.ClusterProfile())
	editAtomicHub = apitest.New(apitest.Hub(), apitest.AtomicClusterProfile())
)

func TestMain(m *testing.M) {
	apitest.Main(m, mapHub, atomicHub, wiredHub, restoredHub, applyHub, editHub, editAtomicHub)
}

// world is a hub as its administrator sees it, for one test.
type world struct{ *ocmtest.Hub }

func newWorld(t *testing.T, cfg *rest.Config) *world {
	t.Helper()
	return &world{ocmtest.New(t, cfg)}
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world { return &world{w.In(t)} }

// limits are the manager's own.
var limits = profiles.Limits{Properties: 1000, PropertyBytes: 64 << 10}

// asCached is a ManagedCluster as the manager's cache holds it.
func asCached(cluster *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	trimmed, _ := limits.Trim(cluster.DeepCopy())
	return trimmed
}

// clearHub deletes everything the inventory follows or makes.
func clearHub(w *world) {
	for _, list := range []client.ObjectList{
		&clusterv1.ManagedClusterList{},
		&clusterv1beta2.ManagedClusterSetBindingList{},
		&clusterv1beta2.ManagedClusterSetList{},
		&clusterv1beta1.PlacementList{},
		&clusterv1beta1.PlacementDecisionList{},
		&addonv1beta1.ManagedClusterAddOnList{},
		&inventoryv1alpha1.ClusterProfileList{},
	} {
		w.Clear(list)
	}
}

// syncedText is the message of the condition while nothing is wrong.
const syncedText = "Every ClusterProfile that this cluster should have is up to date."

// synced waits until the condition of a cluster says that nothing is wrong.
func (w *world) synced(cluster string) {
	w.T.Helper()
	w.EventuallyAddonCondition(cluster, "ProfilesSynced", "True", "Synced", syncedText)
}

var invalidSelector = &metav1.LabelSelector{
	MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Sometimes"}},
}

// slice is a slice of a Placement's decisions, without any.
func slice(namespace, name, placement string) *clusterv1beta1.PlacementDecision {
	return &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{"cluster.open-cluster-management.io/placement": placement},
	}}
}
