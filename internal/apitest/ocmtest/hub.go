package ocmtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/kinds"
)

// AddonName is the name of the addon on every cluster.
const AddonName = "cluster-inventory"

// Scheme knows every kind that tests of hub and spoke handle.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := kinds.NewScheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(clusterv1alpha1.Install(scheme))
	return scheme
})

// NewManager returns a manager like the one on the hub, as apitest.NewManager does, which knows
// only the kinds that that one knows.
func NewManager(tb testing.TB, cfg *rest.Config, cached map[client.Object]cache.ByObject) manager.Manager {
	tb.Helper()
	return apitest.NewManager(tb, cfg, kinds.NewScheme(), cached,
		func(o *manager.Options) { o.MapperProvider = kinds.NewMapper })
}

// Hub is a hub as its administrator sees it, for one test.
type Hub struct{ *apitest.World }

// New returns the hub of a configuration.
func New(tb testing.TB, cfg *rest.Config) *Hub {
	tb.Helper()
	return &Hub{apitest.NewWorld(tb, cfg, Scheme())}
}

// In returns the same hub for a subtest.
func (h *Hub) In(tb testing.TB) *Hub { return &Hub{h.World.In(tb)} }

// Cluster creates an accepted, healthy ManagedCluster, its namespace and the addon
// on it. Its name is the base made unique.
func (h *Hub) Cluster(
	base string, labels map[string]string, claims ...clusterv1.ManagedClusterClaim,
) *clusterv1.ManagedCluster {
	h.T.Helper()
	return h.ClusterNamed(h.Name(base), labels, claims...)
}

// ClusterNamed is Cluster for a name as it is, for tests that have the hub to themselves.
func (h *Hub) ClusterNamed(
	name string, labels map[string]string, claims ...clusterv1.ManagedClusterClaim,
) *clusterv1.ManagedCluster {
	h.T.Helper()
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	h.MustCreate(cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name}})
	apitest.EditStatus(h, cluster, func(c *clusterv1.ManagedCluster) {
		c.Status.Conditions = []metav1.Condition{
			Condition("HubAcceptedManagedCluster", "True", "Accepted", ""),
			Condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined"),
			Condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", "Managed cluster is available"),
		}
		c.Status.Version.Kubernetes = "v1.35.4"
		c.Status.ClusterClaims = claims
	})
	h.Enable(cluster.Name)
	return cluster
}

// Enable creates the addon on a cluster and applies addon-framework's first changes: until
// then the manager writes no condition.
func (h *Hub) Enable(cluster string) *addonv1beta1.ManagedClusterAddOn {
	h.T.Helper()
	addon := Addon(cluster)
	h.MustCreate(addon)
	apitest.EditStatus(h, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
	})
	return addon
}

// Addon is the addon on a cluster, not yet created.
func Addon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: AddonName}}
}

// AddonCondition returns a condition of the addon on a cluster, zero if it has
// none of that type.
func (h *Hub) AddonCondition(cluster, conditionType string) metav1.Condition {
	h.T.Helper()
	addon := Addon(cluster)
	h.MustGet(addon)
	return ptr.Deref(apimeta.FindStatusCondition(addon.Status.Conditions, conditionType), metav1.Condition{})
}

// EventuallyAddonCondition waits until the addon on a cluster has this condition.
func (h *Hub) EventuallyAddonCondition(cluster, conditionType, status, reason, message string) {
	h.T.Helper()
	h.Eventually(fmt.Sprintf("condition %s of cluster %s", conditionType, cluster), func() string {
		got := h.AddonCondition(cluster, conditionType)
		return cmp.Diff([]string{status, reason, message}, []string{string(got.Status), got.Reason, got.Message})
	})
}

// Set creates a ManagedClusterSet whose name is the base made unique.
func (h *Hub) Set(base string, selector clusterv1beta2.ManagedClusterSelector) *clusterv1beta2.ManagedClusterSet {
	h.T.Helper()
	set := &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: h.Name(base)},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
	}
	h.MustCreate(set)
	return set
}

// ExclusiveSet creates a set whose members are labelled as InSet says.
func (h *Hub) ExclusiveSet(base string) *clusterv1beta2.ManagedClusterSet {
	h.T.Helper()
	return h.Set(base, clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel})
}

// Claim is a cluster claim.
func Claim(name, value string) clusterv1.ManagedClusterClaim {
	return clusterv1.ManagedClusterClaim{Name: name, Value: value}
}

// InSet are the labels of a cluster in an exclusive set.
func InSet(set string) map[string]string {
	return map[string]string{"cluster.open-cluster-management.io/clusterset": set}
}

// Bind binds a set to a namespace; the binding is in effect.
func (h *Hub) Bind(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	h.T.Helper()
	binding := &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
	h.MustCreate(binding)
	apitest.EditStatus(h, binding, func(b *clusterv1beta2.ManagedClusterSetBinding) {
		b.Status.Conditions = []metav1.Condition{Condition("Bound", "True", "ClusterSetBound", "")}
	})
	return binding
}

// Placement creates a publishing Placement that has decided for the clusters.
func (h *Hub) Placement(
	namespace, name string, clusters ...string,
) (*clusterv1beta1.Placement, *clusterv1beta1.PlacementDecision) {
	h.T.Helper()
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"},
	}}
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name + "-decision-1",
		Labels: map[string]string{"cluster.open-cluster-management.io/placement": name},
	}}
	h.MustCreate(placement, decision)
	h.Decide(placement, decision, clusters...)
	return placement, decision
}

// Decide writes the decision's slice and then the Placement's status, in the order
// of OCM's scheduler.
func (h *Hub) Decide(
	placement *clusterv1beta1.Placement, decision *clusterv1beta1.PlacementDecision, clusters ...string,
) {
	h.T.Helper()
	apitest.EditStatus(h, decision, func(d *clusterv1beta1.PlacementDecision) {
		d.Status.Decisions = []clusterv1beta1.ClusterDecision{}
		for _, cluster := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
	})
	apitest.EditStatus(h, placement, func(p *clusterv1beta1.Placement) {
		p.Status.NumberOfSelectedClusters = int32(len(clusters)) //nolint:gosec // a handful
		p.Status.Conditions = []metav1.Condition{
			Condition("PlacementMisconfigured", "False", "Succeedconfigured", ""),
			Condition("PlacementSatisfied", "True", "AllDecisionsScheduled", ""),
		}
		p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{}
	})
}

// Profile returns the profile of a pair, or nil.
func (h *Hub) Profile(namespace, cluster string) *inventoryv1alpha1.ClusterProfile {
	h.T.Helper()
	profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}}
	if !h.Find(profile) {
		return nil
	}
	return profile
}

// OurProfile is a ClusterProfile that bears the marks of this addon's manager, not
// yet created.
func OurProfile(namespace, cluster string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster, Labels: map[string]string{
			"app.kubernetes.io/managed-by":            "cluster-inventory-addon",
			"open-cluster-management.io/cluster-name": cluster,
			"x-k8s.io/cluster-manager":                "open-cluster-management",
		}},
		Spec: inventoryv1alpha1.ClusterProfileSpec{
			ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"},
		},
	}
}

// Condition is a condition of an arbitrary, fixed time.
func Condition(conditionType, status, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
		LastTransitionTime: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}
