package inventory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
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

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

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

// world is a hub as its administrator sees it, for one test: names made by it are
// the test's own.
type world struct {
	client.Client
	t      *testing.T
	suffix string
}

func newWorld(t *testing.T, cfg *rest.Config) *world {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: testScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{Client: c, t: t, suffix: fmt.Sprintf("-%d", time.Now().UnixNano()%1e9)}
}

// name returns a cluster-wide name no other test uses.
func (w *world) name(base string) string { return base + w.suffix }

func (w *world) create(objs ...client.Object) {
	w.t.Helper()
	for _, obj := range objs {
		if err := w.Create(w.t.Context(), obj); err != nil {
			w.t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (w *world) delete(obj client.Object) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatalf("delete %T %s: %v", obj, obj.GetName(), err)
	}
}

// edit changes an object, and its status if setStatus is given, whatever others
// write meanwhile.
func edit[T client.Object](w *world, obj T, change func(T), setStatus func(T)) {
	w.t.Helper()
	for _, part := range []struct {
		change func(T)
		write  func(context.Context, T, client.Patch) error
	}{
		{change, func(ctx context.Context, obj T, patch client.Patch) error { return w.Patch(ctx, obj, patch) }},
		{setStatus, func(ctx context.Context, obj T, patch client.Patch) error { return w.Status().Patch(ctx, obj, patch) }},
	} {
		if part.change == nil {
			continue
		}
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			w.t.Fatalf("get %T %s: %v", obj, obj.GetName(), err)
		}
		before := obj.DeepCopyObject().(client.Object)
		part.change(obj)
		if err := part.write(w.t.Context(), obj, client.MergeFrom(before)); err != nil {
			w.t.Fatalf("edit %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// namespace makes a consumer's namespace.
func (w *world) namespace(annotations map[string]string) string {
	w.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-", Annotations: annotations}}
	w.create(ns)
	return ns.Name
}

// cluster makes an accepted, healthy ManagedCluster, its namespace and its addon.
func (w *world) cluster(base string, labels map[string]string, claims ...clusterv1.ManagedClusterClaim) *clusterv1.ManagedCluster {
	w.t.Helper()
	name := w.name(base)
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	w.create(cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	edit(w, cluster, nil, func(cluster *clusterv1.ManagedCluster) {
		cluster.Status.Conditions = []metav1.Condition{
			condition("HubAcceptedManagedCluster", "True", "Accepted", ""),
			condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined"),
			condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", "Managed cluster is available"),
		}
		cluster.Status.Version.Kubernetes = "v1.35.4"
		cluster.Status.ClusterClaims = claims
	})
	w.create(addon(name))
	return cluster
}

func (w *world) set(base string, selector clusterv1beta2.ManagedClusterSelector) *clusterv1beta2.ManagedClusterSet {
	w.t.Helper()
	set := &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: w.name(base)},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
	}
	w.create(set)
	return set
}

// exclusive is a set whose members are labelled with its name.
func (w *world) exclusive(base string) *clusterv1beta2.ManagedClusterSet {
	w.t.Helper()
	return w.set(base, clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel})
}

// bind binds a set into a namespace, as OCM's controller would find it bound.
func (w *world) bind(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	w.t.Helper()
	binding := &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
	w.create(binding)
	edit(w, binding, nil, func(binding *clusterv1beta2.ManagedClusterSetBinding) {
		binding.Status.Conditions = []metav1.Condition{condition("Bound", "True", "ClusterSetBound", "")}
	})
	return binding
}

// placement makes a publishing Placement that has decided for the clusters.
func (w *world) placement(namespace, name string, clusters ...string) (*clusterv1beta1.Placement, *clusterv1beta1.PlacementDecision) {
	w.t.Helper()
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"},
	}}
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name + "-decision-1",
		Labels: map[string]string{"cluster.open-cluster-management.io/placement": name},
	}}
	w.create(placement, decision)
	w.decide(placement, decision, clusters...)
	return placement, decision
}

// decide writes the slice and then the status, as OCM's scheduler does.
func (w *world) decide(placement *clusterv1beta1.Placement, decision *clusterv1beta1.PlacementDecision, clusters ...string) {
	w.t.Helper()
	edit(w, decision, nil, func(decision *clusterv1beta1.PlacementDecision) {
		decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
		for _, cluster := range clusters {
			decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
	})
	edit(w, placement, nil, func(placement *clusterv1beta1.Placement) {
		placement.Status.NumberOfSelectedClusters = int32(len(clusters))
		placement.Status.Conditions = []metav1.Condition{
			condition("PlacementMisconfigured", "False", "Succeedconfigured", ""),
			condition("PlacementSatisfied", "True", "AllDecisionsScheduled", ""),
		}
		placement.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{}
	})
}

// profile returns the profile of a pair, or nil.
func (w *world) profile(namespace, name string) *inventoryv1alpha1.ClusterProfile {
	w.t.Helper()
	profile := &inventoryv1alpha1.ClusterProfile{}
	err := w.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, profile)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatalf("get profile: %v", err)
	}
	return profile
}

// eventually waits until what returns "", which else says what is missing.
func (w *world) eventually(what func() string) {
	w.t.Helper()
	var missing string
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		missing = what()
		return missing == "", nil
	})
	if err != nil {
		w.t.Fatalf("after %s: %s", patience, missing)
	}
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

// sent lists writes as "VERB resource".
func sent(calls []apitest.Call) []string {
	list := []string{}
	for _, call := range calls {
		list = append(list, strings.TrimSpace(call.Method+" "+call.Resource))
	}
	return list
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	return &world{Client: w.Client, t: t, suffix: w.suffix}
}

func containsName(call apitest.Call, name string) bool {
	return strings.Contains(call.Path, name) || strings.Contains(call.Body, name)
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
