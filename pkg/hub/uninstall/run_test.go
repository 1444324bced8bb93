package uninstall

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var hub = apitest.New(apitest.Hub(), apitest.ClusterProfile())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

const cleanup = "addon.open-cluster-management.io/addon-pre-delete"

// fixture is a hub on which the addon is installed on two clusters, each with a
// profile of ours and one of somebody else.
type fixture struct {
	t        *testing.T
	c        client.Client
	wire     *apitest.Wire
	clusters []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addonv1beta1.Install, inventoryv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{t: t, wire: &apitest.Wire{}}
	var err error
	if f.c, err = client.New(f.wire.Tap(hub.Config(t)), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	f.create(&addonv1beta1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"},
		Spec: addonv1beta1.ClusterManagementAddOnSpec{InstallStrategy: addonv1beta1.InstallStrategy{
			Type:       "Placements",
			Placements: []addonv1beta1.PlacementStrategy{{PlacementRef: addonv1beta1.PlacementRef{Namespace: "ocm", Name: "all"}}},
		}},
	})
	for range 2 {
		cluster := hub.Namespace(t, nil)
		f.clusters = append(f.clusters, cluster)
		f.create(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory", Finalizers: []string{cleanup}}})
		f.create(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "another-addon"}})
		for name, label := range map[string]string{"ours": "cluster-inventory-addon", "theirs": "somebody"} {
			f.create(&inventoryv1alpha1.ClusterProfile{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": label, "x-k8s.io/cluster-manager": "open-cluster-management", "example.com/other": "stays"}},
				Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
			})
		}
		// Marked by a mistake of somebody's, but of another cluster manager.
		f.create(&inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "another-managers", Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon", "x-k8s.io/cluster-manager": "another"}},
			Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "another"}},
		})
	}
	f.wire.Reset()
	return f
}

func (f *fixture) create(object client.Object) {
	f.t.Helper()
	if err := f.c.Create(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		ctx := context.Background()
		object.SetFinalizers(nil)
		object.SetResourceVersion("")
		_ = f.c.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		if err := f.c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			f.t.Error(err)
		}
	})
}

func (f *fixture) uninstaller(keep bool) *uninstaller {
	return &uninstaller{client: f.c, keepProfiles: keep, every: 10 * time.Millisecond, pageSize: 1}
}

// look takes one step and returns what it says it waits for.
func (f *fixture) look(u *uninstaller) string {
	f.t.Helper()
	done, err := u.takeStep(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if done {
		return "done"
	}
	return u.progress
}

func (f *fixture) addon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	f.t.Helper()
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := f.c.Get(f.t.Context(), client.ObjectKey{Namespace: cluster, Name: "cluster-inventory"}, addon); err != nil {
		f.t.Fatal(err)
	}
	return addon
}

// cleanedUp is what the manager does once a spoke has been cleaned up.
func (f *fixture) cleanedUp(cluster string) {
	f.t.Helper()
	addon := f.addon(cluster)
	if addon.DeletionTimestamp.IsZero() {
		f.t.Fatalf("the addon of %s is not being deleted", cluster)
	}
	addon.Finalizers = nil
	if err := f.c.Update(f.t.Context(), addon); err != nil {
		f.t.Fatal(err)
	}
}

// answers is what the manager does once it knows that profiles stay.
func (f *fixture) answers(cluster string) {
	f.t.Helper()
	addon := f.addon(cluster)
	addon.Status.Conditions = []metav1.Condition{{Type: "ProfilesSynced", Status: metav1.ConditionFalse, Reason: "ProfilesKept", LastTransitionTime: metav1.Now()}}
	if err := f.c.SubResource("status").Update(f.t.Context(), addon); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) profiles(cluster string) string {
	f.t.Helper()
	list := &inventoryv1alpha1.ClusterProfileList{}
	if err := f.c.List(f.t.Context(), list, client.InNamespace(cluster)); err != nil {
		f.t.Fatal(err)
	}
	var names []string
	for _, profile := range list.Items {
		names = append(names, profile.Name)
	}
	return strings.Join(names, " ")
}

func (f *fixture) expect(what, got, want string) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestUninstall(t *testing.T) {
	f := newFixture(t)
	u := f.uninstaller(false)
	first, second := f.clusters[0], f.clusters[1]
	both := "the addon to be removed from " + strings.Join(sorted(first, second), ", ")

	f.expect("first", f.look(u), "the install strategy to become Manual")
	definition := &addonv1beta1.ClusterManagementAddOn{}
	if err := f.c.Get(t.Context(), client.ObjectKey{Name: "cluster-inventory"}, definition); err != nil {
		t.Fatal(err)
	}
	if strategy := definition.Spec.InstallStrategy; strategy.Type != "Manual" || strategy.Placements != nil {
		t.Errorf("install strategy is %+v, want Manual without placements", strategy)
	}
	f.expect("keep", definition.Annotations["inventory.open-cluster-management.io/keep-profiles"], "false")

	f.expect("then", f.look(u), both)
	f.expect("still", f.look(u), both)
	if deletes := len(f.wire.Writes("managedclusteraddons")); deletes != 2 {
		t.Errorf("%d deletions of addons, want one for each of the two", deletes)
	}
	f.cleanedUp(first)
	f.expect("one is clean", f.look(u), "the addon to be removed from "+second)
	f.cleanedUp(second)
	f.expect("both are clean", f.look(u)[:2], "2 ") // ClusterProfiles to be deleted
	for _, cluster := range f.clusters {
		f.expect("profiles of "+cluster, f.profiles(cluster), "another-managers theirs")
	}
	// The manager takes copies of tokens back before it gives up its rights to them.
	own := func(name string, labels map[string]string) *rbacv1.RoleBinding {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: first, Name: name, Labels: labels},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		}
		f.create(binding)
		return binding
	}
	labels := map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon", "inventory.open-cluster-management.io/credential": "true"}
	copies := own("open-cluster-management:cluster-inventory:token-target", labels)
	tokens := own("open-cluster-management:cluster-inventory:token-source", labels)
	own("theirs", labels)
	for _, binding := range []*rbacv1.RoleBinding{copies, tokens} {
		f.expect("rights left", f.look(u), "the manager to remove copies of tokens and its RoleBindings for them, in "+first)
		if err := f.c.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	f.expect("nothing left", f.look(u), "")
	f.expect("nothing left, twice", f.look(u), "done")

	other := &addonv1beta1.ManagedClusterAddOn{}
	if err := f.c.Get(t.Context(), client.ObjectKey{Namespace: first, Name: "another-addon"}, other); err != nil {
		t.Errorf("another addon was touched: %v", err)
	}
}

func TestUninstallKeepsProfiles(t *testing.T) {
	f := newFixture(t)
	u := f.uninstaller(true)
	first, second := f.clusters[0], f.clusters[1]

	f.expect("first", f.look(u), "the install strategy to become Manual")
	f.look(u)
	f.answers(first)
	f.expect("one answered", f.look(u), "the manager to confirm that it keeps the profiles of "+second)
	if deletes := f.wire.Writes("managedclusteraddons"); len(deletes) > 0 {
		t.Errorf("an addon was deleted before all had answered: %v", deletes)
	}
	f.answers(second)
	f.look(u)
	f.cleanedUp(first)
	f.cleanedUp(second)
	f.expect("both are clean", f.look(u), "2 ClusterProfiles to be released")
	f.expect("nothing left", f.look(u), "")
	f.expect("nothing left, twice", f.look(u), "done")
	for _, cluster := range f.clusters {
		f.expect("profiles of "+cluster, f.profiles(cluster), "another-managers ours theirs")
		profile := &inventoryv1alpha1.ClusterProfile{}
		if err := f.c.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: "ours"}, profile); err != nil {
			t.Fatal(err)
		}
		if mark, marked := profile.Labels["app.kubernetes.io/managed-by"]; marked || profile.Labels["example.com/other"] != "stays" {
			t.Errorf("mark %q, labels %v; want the mark gone and the rest as it was", mark, profile.Labels)
		}
	}

	// A later attempt without the wish to keep finds that they were kept.
	again := f.uninstaller(false)
	f.expect("again", f.look(again), "")
	f.expect("again, twice", f.look(again), "done")
	f.expect("profiles", f.profiles(first), "another-managers ours theirs")
}

// TestUninstallHoldsLittle: the hook's memory is bounded, and a hub may have
// thousands of clusters.
func TestUninstallHoldsLittle(t *testing.T) {
	f := newFixture(t)
	for _, cluster := range f.clusters {
		f.answers(cluster)
	}
	f.wire.Reset()
	o, err := f.uninstaller(false).observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range f.wire.Calls() {
		if (call.Resource == "managedclusteraddons" || call.Resource == "clusterprofiles") && call.Query.Get("limit") != "1" {
			t.Errorf("%s %s?%s is not for one page", call.Method, call.Path, call.Query.Encode())
		}
	}
	if len(o.addons) != 2 || len(o.profiles) != 2 {
		t.Errorf("%d addons and %d profiles, want two of each", len(o.addons), len(o.profiles))
	}
	for _, addon := range o.addons {
		whole := f.addon(addon.Namespace)
		want := addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: whole.Namespace, Name: whole.Name, UID: whole.UID},
			Status:     addonv1beta1.ManagedClusterAddOnStatus{Conditions: whole.Status.Conditions},
		}
		if diff := cmp.Diff(want, addon); diff != "" {
			t.Errorf("addon (-want +got):\n%s", diff)
		}
	}
	for _, profile := range o.profiles {
		if len(profile.ManagedFields) > 0 {
			t.Errorf("profile %s/%s is held with its managed fields", profile.Namespace, profile.Name)
		}
	}
}

func TestUninstallSaysWhatItWaitedForInVain(t *testing.T) {
	f := newFixture(t)
	u := f.uninstaller(false)
	// It has said what it waits for before its time is short.
	f.look(u)
	f.look(u)
	err := u.run(t.Context(), 300*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "still waiting for the addon to be removed from "+strings.Join(sorted(f.clusters...), ", ")) {
		t.Errorf("got %v", err)
	}
}

func TestUninstallGoesOnAfterErrors(t *testing.T) {
	f := newFixture(t)
	for _, cluster := range f.clusters {
		addon := f.addon(cluster)
		addon.Finalizers = nil
		if err := f.c.Update(t.Context(), addon); err != nil {
			t.Fatal(err)
		}
	}
	// Each write fails once, and is found undone at the next look.
	failed := map[string]bool{}
	f.wire.Fail(func(call apitest.Call) apitest.Fault {
		if !call.IsWrite() || failed[call.Path] {
			return apitest.Fault{}
		}
		failed[call.Path] = true
		return apitest.Fault{Status: 503, Reason: "ServiceUnavailable"}
	})
	if err := f.uninstaller(false).run(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(failed) != 5 {
		t.Errorf("%d writes failed once, want 5: strategy, two addons, two profiles", len(failed))
	}
	f.expect("profiles", f.profiles(f.clusters[0]), "another-managers theirs")
}

func TestUninstallGivesUpWhenItMayNot(t *testing.T) {
	f := newFixture(t)
	nobody, err := client.New(hub.User(t, "nobody"), client.Options{Scheme: f.c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	err = (&uninstaller{client: nobody, every: time.Millisecond}).run(t.Context(), time.Hour)
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want forbidden", err)
	}
}

func sorted(names ...string) []string {
	if len(names) == 2 && names[1] < names[0] {
		return []string{names[1], names[0]}
	}
	return names
}
