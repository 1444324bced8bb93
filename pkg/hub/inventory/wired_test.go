package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// rights are those doc.go lists.
func rights() []rbacv1.PolicyRule {
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	named := func(name string, r rbacv1.PolicyRule) rbacv1.PolicyRule {
		r.ResourceNames = []string{name}
		return r
	}
	return []rbacv1.PolicyRule{
		rule("cluster.open-cluster-management.io",
			[]string{"managedclusters", "managedclustersets", "managedclustersetbindings", "placements", "placementdecisions"},
			"list", "watch"),
		named("cluster-inventory",
			rule("addon.open-cluster-management.io", []string{"managedclusteraddons", "clustermanagementaddons"}, "list", "watch")),
		named("cluster-inventory",
			rule("addon.open-cluster-management.io", []string{"managedclusteraddons/status"}, "patch")),
		rule("multicluster.x-k8s.io", []string{"clusterprofiles"}, "list", "watch", "create", "patch", "delete"),
		rule("multicluster.x-k8s.io", []string{"clusterprofiles/status"}, "patch"),
		rule("", []string{"namespaces"}, "list", "watch"),
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, "get", "list", "watch"),
		rule("events.k8s.io", []string{"events"}, "create"),
	}
}

// asManager returns the configuration of a user with exactly these rights.
func asManager(t *testing.T, server *apitest.Server, w *world) *rest.Config {
	t.Helper()
	name := w.Name("inventory-manager")
	w.MustCreate(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rights()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		},
	)
	return server.User(t, name)
}

// allowed is a guard that allows writing.
func allowed(context.Context) (profiles.Verdict, error) { return profiles.Verdict{Allowed: true}, nil }

// switchGuard is a guard that a test turns.
type switchGuard struct{ blocked atomic.Bool }

func (g *switchGuard) verdict(context.Context) (profiles.Verdict, error) {
	if g.blocked.Load() {
		return profiles.Verdict{Reason: "UpstreamGateOn", Message: "upstream writes profiles"}, nil
	}
	return profiles.Verdict{Allowed: true}, nil
}

// startManager runs the inventory in a manager until the returned function is
// called, or the test ends.
func startManager(t *testing.T, cfg *rest.Config, opts Options) (stop func()) {
	t.Helper()
	return startLimited(t, cfg, limits, opts)
}

// startLimited is startManager with other limits.
func startLimited(t *testing.T, cfg *rest.Config, limits profiles.Limits, opts Options) (stop func()) {
	t.Helper()
	byObject := cacheOptions()
	maps.DeleteFunc(byObject, func(kind client.Object, _ cache.ByObject) bool {
		_, isCluster := kind.(*clusterv1.ManagedCluster)
		return isCluster
	})
	maps.Copy(byObject, CacheOptions(limits))
	byObject[&corev1.ConfigMap{}] = cache.ByObject{Namespaces: map[string]cache.Config{"default": {}}}
	return startWith(t, cfg, byObject, func(manager.Manager) Options { return opts })
}

// cacheOptions are those of the inventory and of what it rests on.
func cacheOptions() map[client.Object]cache.ByObject {
	byObject := selection.CacheOptions()
	maps.Copy(byObject, CacheOptions(limits))
	// Of addons, the manager may list those of this name only.
	byObject[&addonv1beta1.ManagedClusterAddOn{}] = cache.ByObject{
		Field: fields.OneTermEqualSelector(metav1.ObjectNameField, "cluster-inventory"),
	}
	return byObject
}

// startWith is startManager with a cache that holds what byObject says, and options
// that may depend on the manager.
func startWith(
	t *testing.T, cfg *rest.Config, byObject map[client.Object]cache.ByObject, options func(manager.Manager) Options,
) (stop func()) {
	t.Helper()
	mgr := ocmtest.NewManager(t, cfg, byObject)
	opts := options(mgr)
	// The CRDs of these hubs are new, so what is missing might still be restored.
	if opts.Clock == nil {
		opts.Clock = apitest.Ahead(watch.RestoreTime)
	}
	if opts.Rule == nil {
		opts.Rule = selection.New(
			mgr.GetCache(), mgr.GetAPIReader(), followDefinitions(t, mgr, opts.Clock), opts.Clock)
	}
	if opts.Metrics == nil {
		opts.Metrics = metrics.New(metrics.Options{})
	}
	var err error
	opts.Events, err = notices.Add(mgr, opts.Clock)
	apitest.Must(t, err)
	source, err := Add(t.Context(), mgr, opts)
	apitest.Must(t, err)
	apitest.Must(t, conditions.Add(t.Context(), mgr, conditions.Options{
		Sources: []conditions.Source{source}, Clock: clock.RealClock{},
	}))
	return apitest.Run(t, mgr.Start)
}

// followDefinitions follows CRDs as the manager does.
func followDefinitions(t *testing.T, mgr manager.Manager, clock clock.PassiveClock) *watch.Definitions {
	t.Helper()
	definitions := watch.NewDefinitions(mgr.GetAPIReader(), clock)
	apitest.Must(t, definitions.AddTo(mgr, "definitions"))
	return definitions
}

// exists waits until a pair has a profile, or has none.
func (w *world) exists(namespace, cluster string, want bool) {
	w.T.Helper()
	w.Eventually("the profile of "+namespace+"/"+cluster+" comes or goes", func() string {
		if got := w.Profile(namespace, cluster) != nil; got != want {
			return fmt.Sprintf("profile %s/%s: exists is %t, want %t", namespace, cluster, got, want)
		}
		return ""
	})
}

// whole waits until the profile of a pair has its status.
func (w *world) whole(namespace, cluster string) {
	w.T.Helper()
	w.Eventually("the profile of "+namespace+"/"+cluster+" is whole", func() string {
		if profile := w.Profile(namespace, cluster); profile == nil || len(profile.Status.Conditions) != 2 {
			return "the profile's status is not written yet"
		}
		return ""
	})
}

func TestInventoryFollowsTheHub(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	w.Patience = 2 * apitest.Patience // what is unknown is reported after half a minute
	t.Cleanup(func() { clearHub(w) })
	wire := &apitest.Wire{}
	guard := &switchGuard{}
	opts := Options{Guard: guard.verdict, GuardObjects: []client.Object{&corev1.ConfigMap{}}, LabelAllow: []string{"env"}}
	// The guard's object in this test is a ConfigMap, which doc.go does not list.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.Name("guard")},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""},
			Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}}}
	cfg := asManager(t, wiredHub, w)
	w.MustCreate(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.Name("inventory-manager")}},
	})
	cfg = wire.Tap(cfg)

	setA, setB := w.ExclusiveSet("a"), w.ExclusiveSet("b")
	ns := w.Namespace("team", nil)
	bindingA := w.Bind(ns, setA.Name)
	c1 := w.Cluster("c1", ocmtest.InSet(setA.Name), ocmtest.Claim("x", "1"))
	c2 := w.Cluster("c2", ocmtest.InSet(setB.Name))
	whole := t
	stop := startManager(whole, cfg, opts)

	t.Run("a member of a bound set is published with two writes", func(t *testing.T) {
		w := w.in(t)
		w.synced(c1.Name)
		w.synced(c2.Name)
		got := w.Profile(ns, c1.Name)
		if got == nil || len(got.Status.Properties) != 1 || got.Status.Properties[0].Value != "1" {
			t.Fatalf("profile = %+v", got)
		}
		if diff := cmp.Diff([]string{"POST clusterprofiles", "PATCH clusterprofiles/status"},
			wire.Sent("clusterprofiles", "clusterprofiles/status")); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})

	t.Run("an edited claim is one patch", func(t *testing.T) {
		w := w.in(t)
		wire.Reset()
		apitest.EditStatus(w, c1, func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("x", "2")}
		})
		w.Eventually("the claim arrives", func() string {
			if got := w.Profile(ns, c1.Name).Status.Properties[0].Value; got != "2" {
				return "property x is " + got
			}
			return ""
		})
		if diff := cmp.Diff([]string{"PATCH clusterprofiles/status"}, wire.Sent()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})

	t.Run("two clusters swap sets", func(t *testing.T) {
		w := w.in(t)
		apitest.Edit(w, c1, func(c *clusterv1.ManagedCluster) { c.Labels = ocmtest.InSet(setB.Name) })
		apitest.Edit(w, c2, func(c *clusterv1.ManagedCluster) { c.Labels = ocmtest.InSet(setA.Name) })
		w.exists(ns, c1.Name, false)
		w.exists(ns, c2.Name, true)
		apitest.Edit(w, c1, func(c *clusterv1.ManagedCluster) { c.Labels = ocmtest.InSet(setA.Name) })
		w.exists(ns, c1.Name, true)
	})

	t.Run("a restart writes nothing", func(t *testing.T) {
		w := w.in(t)
		w.whole(ns, c1.Name)
		w.whole(ns, c2.Name)
		stop()
		wire.Reset()
		started := wire.Calls()
		stop = startManager(whole, cfg, opts)
		// The new manager has settled when what happens after its start arrives.
		c3 := w.Cluster("c3", ocmtest.InSet(setA.Name))
		w.whole(ns, c3.Name)
		w.synced(c3.Name)
		for _, call := range wire.Calls()[len(started):] {
			if call.IsWrite() && call.Resource != "events" && !call.Mentions(c3.Name) {
				t.Errorf("wrote %s %s: %s", call.Method, call.Path, call.Body)
			}
		}
	})

	t.Run("a Placement narrows, widens and is deleted", func(t *testing.T) {
		w := w.in(t)
		placement, decision := w.Placement(ns, "view", c1.Name)
		w.exists(ns, c2.Name, false)
		w.exists(ns, c1.Name, true)
		w.Decide(placement, decision, c1.Name, c2.Name)
		w.exists(ns, c2.Name, true)
		w.Decide(placement, decision)
		w.exists(ns, c1.Name, false)
		w.exists(ns, c2.Name, false)
		w.MustDelete(placement)
		w.exists(ns, c1.Name, true)
		w.exists(ns, c2.Name, true)
		w.MustDelete(decision)
	})

	t.Run("the namespace requires a Placement", func(t *testing.T) {
		w := w.in(t)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		apitest.Edit(w, namespace, func(n *corev1.Namespace) {
			n.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
		})
		w.exists(ns, c1.Name, false)
		apitest.Edit(w, namespace, func(n *corev1.Namespace) { n.Annotations = nil })
		w.exists(ns, c1.Name, true)
	})

	t.Run("the set becomes invalid and valid again: nothing is deleted, other sets work", func(t *testing.T) {
		w := w.in(t)
		other := w.Namespace("team", nil)
		uid := w.Profile(ns, c1.Name).UID
		apitest.Edit(w, setA, func(s *clusterv1beta2.ManagedClusterSet) {
			s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
				SelectorType: clusterv1beta2.LabelSelector,
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k",
					Operator: "Sometimes"}}},
			}
		})
		w.Eventually("the condition says that nothing is known", func() string {
			if got := w.AddonCondition(c1.Name, "ProfilesSynced"); got.Reason != "SelectionUnknown" {
				return "condition says " + got.Reason + ": " + got.Message
			}
			return ""
		})
		w.Bind(other, setB.Name)
		apitest.Edit(w, c2, func(c *clusterv1.ManagedCluster) { c.Labels = ocmtest.InSet(setB.Name) })
		w.exists(other, c2.Name, true)
		apitest.Edit(w, setA, func(s *clusterv1beta2.ManagedClusterSet) {
			s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}
		})
		w.synced(c1.Name)
		w.exists(ns, c2.Name, false)
		if got := w.Profile(ns, c1.Name).UID; got != uid {
			t.Errorf("the profile's UID was %s and is %s", uid, got)
		}
	})

	t.Run("upstream's gate is switched on and off: nothing is written in the meantime", func(t *testing.T) {
		w := w.in(t)
		guard.blocked.Store(true)
		w.MustCreate(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.Name("gate-on")}})
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "False", "UpstreamGateOn", "upstream writes profiles")
		wire.Reset()
		apitest.EditStatus(w, c1, func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("x", "3")}
		})
		guard.blocked.Store(false)
		w.MustCreate(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.Name("gate-off")}})
		w.synced(c1.Name)
		w.Eventually("the claim arrives", func() string {
			if got := w.Profile(ns, c1.Name).Status.Properties[0].Value; got != "3" {
				return "property x is " + got
			}
			return ""
		})
		if diff := cmp.Diff([]string{"PATCH clusterprofiles/status"},
			wire.Sent("clusterprofiles", "clusterprofiles/status")); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})

	t.Run("the addon is deleted and created, with an event on the binding", func(t *testing.T) {
		w := w.in(t)
		fresh := w.Namespace("team", nil)
		binding := w.Bind(fresh, setA.Name)
		w.exists(fresh, c1.Name, true)
		w.MustDelete(ocmtest.Addon(c1.Name))
		w.exists(fresh, c1.Name, false)
		w.exists(ns, c1.Name, false)
		w.Eventually("an event on the binding", func() string {
			list := &eventsv1.EventList{}
			if err := w.List(t.Context(), list, client.InNamespace(fresh)); err != nil {
				t.Fatal(err)
			}
			var notes []string
			for _, e := range list.Items {
				if e.Regarding.UID == binding.UID {
					notes = append(notes, e.Reason+" "+e.Note)
				}
			}
			want := "ProfilesWithheld " + c1.Name + " does not have the addon cluster-inventory"
			if slices.Contains(notes, want) {
				return ""
			}
			return fmt.Sprintf("no event %q among %q", want, notes)
		})
		w.MustDelete(binding)
		w.Enable(c1.Name)
		w.exists(ns, c1.Name, true)
		w.exists(fresh, c1.Name, false)
	})

	t.Run("unbound, the cluster leaves", func(t *testing.T) {
		w := w.in(t)
		apitest.EditStatus(w, bindingA, func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "False", "ClusterSetNotFound", "")}
		})
		w.exists(ns, c1.Name, false)
		w.synced(c1.Name)
	})
}

func TestInventoryWaitsForItsAPIAndResumes(t *testing.T) {
	server := apitest.Start(t, apitest.Hub())
	w := newWorld(t, server.Config(t))
	set := w.ExclusiveSet("s")
	ns := w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	c := w.Cluster("c", ocmtest.InSet(set.Name), ocmtest.Claim("a", "1"))
	startManager(t, asManager(t, server, w), Options{Guard: allowed})

	const missing = "The hub does not serve ClusterProfiles: the CustomResourceDefinition " +
		"clusterprofiles.multicluster.x-k8s.io is missing."
	w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "False", "ClusterProfileAPIMissing", missing)

	server.Install(t, apitest.ClusterProfile())
	w.synced(c.Name)
	first := w.Profile(ns, c.Name)

	// A user deletes the CRD, and with it every profile, and recreates it.
	crd := kube.Partial(kube.CRDKind)
	crd.Name = "clusterprofiles.multicluster.x-k8s.io"
	w.MustDelete(crd)
	w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "False", "ClusterProfileAPIMissing", missing)
	w.Eventually("the CRD is gone", func() string {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(crd),
			kube.Partial(kube.CRDKind)); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the profiles' CRD is still there: %v", err)
		}
		return ""
	})
	server.Install(t, apitest.AtomicClusterProfile())
	w.Eventually("the profile is recreated", func() string {
		list := &inventoryv1alpha1.ClusterProfileList{}
		if err := w.List(t.Context(), list); err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 || list.Items[0].UID == first.UID || len(list.Items[0].Status.Properties) != 1 {
			return fmt.Sprintf("profiles: %d", len(list.Items))
		}
		return ""
	})
	w.synced(c.Name)

	// A user deletes the addons' CRD, and with it every addon: nothing is known of the inventory
	// then, so nothing is deleted.
	quiet := w.Namespace("team", nil)
	w.Bind(quiet, set.Name)
	w.exists(quiet, c.Name, true)
	second := w.Profile(quiet, c.Name)
	addons := kube.Partial(kube.CRDKind)
	addons.Name = "managedclusteraddons.addon.open-cluster-management.io"
	w.MustDelete(addons)
	w.Eventually("an event that the addons are not served", func() string {
		list := &eventsv1.EventList{}
		if err := w.List(t.Context(), list, client.InNamespace(quiet)); err != nil {
			return err.Error()
		}
		for _, event := range list.Items {
			if strings.Contains(event.Note, "the hub does not serve managedclusteraddons.addon.open-cluster-management.io") {
				return ""
			}
		}
		return "no event says that the addons are not served"
	})
	if got := w.Profile(quiet, c.Name); got == nil || got.UID != second.UID {
		t.Errorf("the profile was deleted: %+v", got)
	}
}
