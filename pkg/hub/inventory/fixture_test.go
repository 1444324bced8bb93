package inventory

import (
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// Two hubs: ClusterProfiles as SIG-Multicluster defines them, and as Open Cluster
// Management does.
var (
	mapHub    = apitest.New(apitest.Hub(), apitest.ClusterProfile())
	atomicHub = apitest.New(apitest.Hub(), apitest.AtomicClusterProfile())
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	apitest.Main(m, mapHub, atomicHub)
}

// world is a hub as its administrator sees it, for one test.
type world struct{ *ocmtest.Hub }

func newWorld(t *testing.T, cfg *rest.Config) *world {
	t.Helper()
	return &world{ocmtest.New(t, cfg)}
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world { return &world{w.In(t)} }

func claim(name, value string) clusterv1.ManagedClusterClaim {
	return clusterv1.ManagedClusterClaim{Name: name, Value: value}
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
