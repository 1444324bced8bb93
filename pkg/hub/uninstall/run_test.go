package uninstall

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

var hub = apitest.New(apitest.Hub(), apitest.AgentRevision(), apitest.ClusterProfile(), apitest.PlacementDecision())

// The names of the manager's RoleBindings and their roles.
const (
	tokenSource = "open-cluster-management:cluster-inventory:token-source"
	tokenTarget = "open-cluster-management:cluster-inventory:token-target"
)

const cleanup = "addon.open-cluster-management.io/addon-pre-delete"

// fixture is a hub on which the addon is installed on two clusters, each with a profile of
// ours and others of another client.
type fixture struct {
	*ocmtest.Hub
	wire      *apitest.Wire // what the uninstaller sends
	installed string        // the namespace of the release
	clusters  []string
	time      *apitest.Clock
	role      *rbacv1.ClusterRole // of OCM's registration controller
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Hub: ocmtest.New(t, hub.Config(t)), wire: &apitest.Wire{}, time: apitest.Ahead(0)}
	f.installed = f.Namespace("release", nil)
	f.role = &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name("registration")}, Rules: registrationRules("get"),
	}
	f.create(f.role, &addonv1beta1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"},
		Spec: addonv1beta1.ClusterManagementAddOnSpec{InstallStrategy: addonv1beta1.InstallStrategy{
			Type: "Placements",
			Placements: []addonv1beta1.PlacementStrategy{
				{PlacementRef: addonv1beta1.PlacementRef{Namespace: "ocm", Name: "all"}},
			},
		}},
	})
	f.create(revision())
	f.create(f.imageRights()...)
	for range 2 {
		cluster := f.Namespace("cluster", nil)
		f.clusters = append(f.clusters, cluster)
		ours, another := ocmtest.Addon(cluster), ocmtest.Addon(cluster)
		ours.Finalizers, another.Name = []string{cleanup}, "another-addon"
		f.create(
			ours, another,
			profile(cluster, "ours", "cluster-inventory-addon", "open-cluster-management"),
			profile(cluster, "theirs", "somebody", "open-cluster-management"),
			// Marked by mistake: it belongs to another cluster manager.
			profile(cluster, "another-managers", "cluster-inventory-addon", "another"),
			decision(cluster, "p-profiles-0", "cluster-inventory-addon"),
			decision(cluster, "theirs", "somebody"),
		)
	}
	slices.Sort(f.clusters)
	return f
}

// registrationRules are of OCM's registration controller, which may do something with
// ClusterProfiles.
func registrationRules(verb string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{verb},
	}}
}

// isGateOff decides as the manager does.
func isGateOff(override upstream.Override) func(*rbacv1.ClusterRole) bool {
	return func(role *rbacv1.ClusterRole) bool {
		return upstream.RegistrationVerdict("", role, true, override).Allowed
	}
}

// revision is what Helm keeps.
func revision() *unstructured.Unstructured {
	revision := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"manifests": "1", "image": "i", "imagePullPolicy": "Always", "installNamespace": "n",
		"claimLimit": int64(0), "logLevel": int64(0),
	}}}
	revision.SetAPIVersion("inventory.open-cluster-management.io/v1alpha1")
	revision.SetKind("AgentRevision")
	revision.SetName("kept")
	return revision
}

// imageRights are what Helm keeps with it.
func (f *fixture) imageRights() []client.Object {
	meta := metav1.ObjectMeta{Namespace: f.installed, Name: "kept", Labels: map[string]string{
		"inventory.open-cluster-management.io/agent-image": "true",
	}}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		},
	}
}

func profile(namespace, name, managedBy, clusterManager string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			"app.kubernetes.io/managed-by": managedBy,
			"x-k8s.io/cluster-manager":     clusterManager,
			"example.com/other":            "stays",
		}},
		Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: clusterManager}},
	}
}

// decision is an empty slice of a Placement's decisions.
func decision(namespace, name, managedBy string) *inventoryv1alpha1.PlacementDecision {
	return &inventoryv1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			"app.kubernetes.io/managed-by": managedBy,
		}},
		Decisions: []inventoryv1alpha1.ClusterDecision{},
	}
}

// slices are the names of the PlacementDecisions in a namespace.
func (f *fixture) slices(namespace string) string {
	f.T.Helper()
	list := &inventoryv1alpha1.PlacementDecisionList{}
	f.MustList(list, client.InNamespace(namespace))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return strings.Join(names, " ")
}

// create creates objects for as long as the test runs.
func (f *fixture) create(objects ...client.Object) {
	f.T.Helper()
	f.MustCreate(objects...)
	f.CleanUp(objects...)
}

func (f *fixture) uninstaller(keep bool) *uninstaller {
	return &uninstaller{
		client: apitest.NewClient(f.T, f.wire.Tap(hub.Config(f.T)), f.Scheme()),
		opts: Options{
			Namespace: f.installed, Timeout: time.Minute, KeepProfiles: keep,
			RegistrationClusterRole: f.role.Name, IsGateOff: isGateOff(upstream.OverrideNone),
			GrantNamespaces: grants.Namespaces,
		},
		clock: f.time, every: 10 * time.Millisecond, pageSize: 1,
	}
}

// binding creates a RoleBinding to a ClusterRole. Another client may have removed its labels.
func (f *fixture) binding(namespace, name, role string) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	f.create(binding)
	return binding
}

// step takes one step and returns what the uninstaller then waits for.
func (f *fixture) step(u *uninstaller) string {
	f.T.Helper()
	done, err := u.takeStep(f.T.Context())
	apitest.Must(f.T, err)
	if done {
		return "done"
	}
	return u.progress
}

func (f *fixture) addon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	f.T.Helper()
	addon := ocmtest.Addon(cluster)
	f.MustGet(addon)
	return addon
}

// cleanedUp does what the manager does once a spoke has been cleaned up.
func (f *fixture) cleanedUp(cluster string) {
	f.T.Helper()
	addon := f.addon(cluster)
	if addon.DeletionTimestamp.IsZero() {
		f.T.Fatalf("the addon of %s is not being deleted", cluster)
	}
	f.release(addon)
}

// release removes the finalizers of an addon.
func (f *fixture) release(addon *addonv1beta1.ManagedClusterAddOn) {
	f.T.Helper()
	f.MustMerge(addon, `{"metadata":{"finalizers":null}}`)
}

// keepsProfiles does what the manager does once it knows that profiles stay.
func (f *fixture) keepsProfiles(cluster string) {
	f.T.Helper()
	apitest.EditStatus(f, ocmtest.Addon(cluster), func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{ocmtest.Condition("ProfilesSynced", "False", "ProfilesKept", "")}
	})
}

func (f *fixture) profiles(cluster string) string {
	f.T.Helper()
	list := &inventoryv1alpha1.ClusterProfileList{}
	f.MustList(list, client.InNamespace(cluster))
	var names []string
	for _, profile := range list.Items {
		names = append(names, profile.Name)
	}
	return strings.Join(names, " ")
}

func (f *fixture) expect(what, got, want string) {
	f.T.Helper()
	if got != want {
		f.T.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestUninstall(t *testing.T) {
	f := newFixture(t)
	u := f.uninstaller(false)
	first, second := f.clusters[0], f.clusters[1]
	both := "the addon to be removed from " + first + ", " + second

	f.expect("first", f.step(u), "the install strategy to become Manual")
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	f.MustGet(definition)
	if strategy := definition.Spec.InstallStrategy; strategy.Type != "Manual" || strategy.Placements != nil {
		t.Errorf("install strategy is %+v, want Manual without placements", strategy)
	}
	f.expect("keep", definition.Annotations["inventory.open-cluster-management.io/keep-profiles"], "false")

	f.expect("then", f.step(u), both)
	f.expect("still", f.step(u), both)
	if deletes := len(f.wire.Writes("managedclusteraddons")); deletes != 2 {
		t.Errorf("%d deletions of addons, want one for each of the two", deletes)
	}
	f.cleanedUp(first)
	f.expect("one is clean", f.step(u), "the addon to be removed from "+second)
	f.cleanedUp(second)
	f.expect("both are clean", f.step(u)[:2], "2 ") // ClusterProfiles to be deleted
	for _, cluster := range f.clusters {
		f.expect("profiles of "+cluster, f.profiles(cluster), "another-managers theirs")
	}
	// The manager deletes copies of tokens before it gives up its rights to them.
	copies := f.binding(first, tokenTarget, tokenTarget)
	tokens := f.binding(first, tokenSource, tokenSource)
	f.binding(first, "theirs", tokenTarget)
	f.binding(second, tokenTarget, "theirs")
	for _, binding := range []*rbacv1.RoleBinding{copies, tokens} {
		f.expect("rights left", f.step(u), "the manager to remove copies of tokens and its RoleBindings for them, in "+first)
		f.MustDelete(binding)
	}
	f.expect("nothing left", f.step(u), "")
	f.expect("nothing left, twice", f.step(u), "done")

	other := ocmtest.Addon(first)
	other.Name = "another-addon"
	f.MustGet(other)
}

// A manager that handles no tokens removes neither copies nor its RoleBindings for them.
// Waiting for the deletion of another client's would never end, and the copies must not be
// forgotten.
func TestUninstallSaysWhereTokensAreLeft(t *testing.T) {
	f := newFixture(t)
	f.free()
	left := f.binding(f.clusters[0], tokenTarget, tokenTarget)
	f.binding(f.clusters[1], tokenTarget, "theirs")
	u := f.uninstaller(false)
	u.opts.GrantsStay = true
	err := u.run(t.Context())
	if want := "in " + f.clusters[0] + ": delete the Secrets there"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
	f.MustDelete(left)
	if err := u.run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUninstallKeepsProfiles(t *testing.T) {
	f := newFixture(t)
	u := f.uninstaller(true)
	first, second := f.clusters[0], f.clusters[1]

	f.expect("first", f.step(u), "the install strategy to become Manual")
	f.step(u)
	f.keepsProfiles(first)
	f.expect("one answered", f.step(u), "the manager to confirm that it keeps the profiles of "+second)
	if deletes := f.wire.Writes("managedclusteraddons"); len(deletes) > 0 {
		t.Errorf("an addon was deleted before all had answered: %v", deletes)
	}
	f.keepsProfiles(second)
	f.step(u)
	f.cleanedUp(first)
	f.cleanedUp(second)
	f.expect("both are clean", f.step(u), "2 ClusterProfiles to be released")
	f.expect("nothing left", f.step(u), "")
	f.expect("nothing left, twice", f.step(u), "done")
	for _, cluster := range f.clusters {
		f.expect("profiles of "+cluster, f.profiles(cluster), "another-managers ours theirs")
		profile := f.Profile(cluster, "ours")
		if mark, marked := profile.Labels["app.kubernetes.io/managed-by"]; marked ||
			profile.Labels["example.com/other"] != "stays" {
			t.Errorf("mark %q, labels %v; want the mark gone and the rest as it was", mark, profile.Labels)
		}
	}

	// A later attempt that would delete profiles finds that they were kept.
	again := f.uninstaller(false)
	f.expect("again", f.step(again), "")
	f.expect("again, twice", f.step(again), "done")
	f.expect("profiles", f.profiles(first), "another-managers ours theirs")
}

// Whose the profiles are is read from the hub: each spoke may write the conditions of its
// addon.
func TestUninstallReadsUpstreamsGateFromTheHub(t *testing.T) {
	says := func(f *fixture, cluster, reason string) {
		apitest.EditStatus(f, ocmtest.Addon(cluster), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = []metav1.Condition{ocmtest.Condition("ProfilesSynced", "False", reason, "")}
		})
	}
	const pending = "the ClusterRole of OCM's registration controller, " +
		"which tells whether OCM's own ClusterProfile feature gate is on"
	declared := func(f *fixture) string {
		definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
		f.MustGet(definition)
		return definition.Annotations["inventory.open-cluster-management.io/keep-profiles"]
	}
	t.Run("a spoke that says it is on changes nothing", func(t *testing.T) {
		f := newFixture(t)
		u := f.uninstaller(false)
		says(f, f.clusters[0], "UpstreamGateOn")
		f.step(u)
		f.expect("profiles", declared(f), "false")
	})
	t.Run("it is on: profiles stay", func(t *testing.T) {
		f := newFixture(t)
		f.role.Rules = registrationRules("patch")
		apitest.Must(t, f.Update(t.Context(), f.role))
		u := f.uninstaller(false)
		f.step(u)
		f.expect("profiles", declared(f), "true")
	})
	t.Run("its ClusterRole is missing for a moment", func(t *testing.T) {
		f := newFixture(t)
		f.MustDelete(f.role)
		u := f.uninstaller(false)
		f.expect("at first", f.step(u), pending)
		f.role.ResourceVersion = ""
		f.create(f.role)
		f.step(u)
		f.expect("profiles", declared(f), "false")
	})
	t.Run("its ClusterRole is missing", func(t *testing.T) {
		f := newFixture(t)
		f.MustDelete(f.role)
		u := f.uninstaller(false)
		f.expect("at first", f.step(u), pending)
		f.time.Set(kube.AbsenceCounts)
		f.step(u)
		f.expect("profiles", declared(f), "true")
	})
	t.Run("the administrator says that it is off", func(t *testing.T) {
		f := newFixture(t)
		f.MustDelete(f.role)
		u := f.uninstaller(false)
		u.opts.IsGateOff = isGateOff(upstream.OverrideOff)
		f.step(u)
		f.expect("profiles", declared(f), "false")
	})
	t.Run("a spoke that never lets its addon say that profiles stay", func(t *testing.T) {
		f := newFixture(t)
		u := f.uninstaller(true)
		f.step(u)
		f.keepsProfiles(f.clusters[0])
		says(f, f.clusters[1], "Synced")
		f.expect("at first", f.step(u), "the manager to confirm that it keeps the profiles of "+f.clusters[1])
		f.time.Set(answerCounts)
		f.expect("in the end", f.step(u), "the addon to be removed from "+strings.Join(f.clusters, ", "))
	})
}

// TestUninstallReadsPageByPage: the hook's memory is limited, and a hub may have
// thousands of clusters.
func TestUninstallReadsPageByPage(t *testing.T) {
	f := newFixture(t)
	f.free()
	apitest.Must(t, f.uninstaller(false).run(t.Context()))
	f.gone()
	pages := map[string]int{}
	for _, call := range f.wire.Calls() {
		isNamed := strings.HasPrefix(call.Resource, "clustermanagementaddons") || call.Resource == "clusterroles"
		if call.Method != http.MethodGet || isNamed {
			continue
		}
		if call.Query.Get("limit") != "1" && strings.HasPrefix(call.Path, "/apis/") && call.Resource != call.Path {
			t.Errorf("%s?%s is not for one page", call.Path, call.Query.Encode())
		}
		if call.Query.Has("continue") {
			pages[call.Resource]++
		}
	}
	for _, resource := range []string{"managedclusteraddons", "clusterprofiles"} {
		if pages[resource] == 0 {
			t.Errorf("no second page of %s was read", resource)
		}
	}
}

// free removes what the addons wait for when they are deleted.
func (f *fixture) free() {
	f.T.Helper()
	for _, cluster := range f.clusters {
		f.release(f.addon(cluster))
	}
}

// gone checks that nothing of the addon is left, and that everything else is.
func (f *fixture) gone() {
	f.T.Helper()
	for _, right := range f.imageRights() {
		if f.Find(right) {
			f.T.Errorf("the %T of an AgentRevision is left", right)
		}
	}
	if f.Find(revision()) {
		f.T.Error("the AgentRevision is left")
	}
	for _, cluster := range f.clusters {
		f.expect("slices of "+cluster, f.slices(cluster), "theirs")
	}
	for _, cluster := range f.clusters {
		if f.Find(ocmtest.Addon(cluster)) {
			f.T.Errorf("the addon of %s is left", cluster)
		}
		f.expect("profiles of "+cluster, f.profiles(cluster), "another-managers theirs")
	}
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// through is the uninstaller with a client whose requests go through what wrap returns.
func (f *fixture) through(u *uninstaller, wrap func(next http.RoundTripper) http.RoundTripper) *uninstaller {
	cfg := f.wire.Tap(hub.Config(f.T))
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return wrap(next) })
	u.client = apitest.NewClient(f.T, cfg, f.Scheme())
	return u
}

// On a large hub a pass takes longer than the API server keeps its snapshot. It then offers
// to continue with the present state.
func TestUninstallContinuesWhenAListExpires(t *testing.T) {
	for name, offers := range map[string]bool{"with the rest of it": true, "from its beginning": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.free()
			var mu sync.Mutex
			expired := map[string]int{}
			u := f.through(f.uninstaller(false), func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					defer mu.Unlock()
					kind := path.Base(r.URL.Path)
					rest := inThePresent(t, r.URL.Query().Get("continue"))
					if rest == "" || expired[kind] >= 2 {
						return next.RoundTrip(r)
					}
					expired[kind]++
					if !offers {
						rest = ""
					}
					body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,` +
						`"metadata":{"continue":"` + rest + `"}}`
					return &http.Response{
						StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}},
						Body: io.NopCloser(strings.NewReader(body)), Request: r,
					}, nil
				})
			})
			apitest.Must(t, u.run(t.Context()))
			f.gone()
			if expired["managedclusteraddons"] != 2 || expired["clusterprofiles"] != 2 {
				t.Errorf("expired %v, want two of each", expired)
			}
		})
	}
}

// inThePresent returns the token with which the API server continues where another one ends,
// but in the present state; "" if the token is empty or of that kind.
func inThePresent(t *testing.T, token string) string {
	text, err := base64.RawURLEncoding.DecodeString(token)
	apitest.Must(t, err)
	var content map[string]any
	if token == "" || json.Unmarshal(text, &content) != nil || content["rv"] == float64(-1) {
		return ""
	}
	content["rv"] = -1
	text, err = json.Marshal(content)
	apitest.Must(t, err)
	return base64.RawURLEncoding.EncodeToString(text)
}

// Deleting ten thousand addons one after the other takes an hour if a conversion webhook
// responds slowly. Deleting all at once would overload it.
func TestUninstallDeletesSeveralAtATime(t *testing.T) {
	f := newFixture(t)
	for i := range 2 * workers {
		f.create(profile(f.clusters[0], fmt.Sprintf("more-%d", i), "cluster-inventory-addon", "open-cluster-management"))
	}
	f.free()
	var mu sync.Mutex
	running, most := 0, 0
	full := make(chan struct{})
	u := f.uninstaller(false)
	u.pageSize = 3 * workers
	f.through(u, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodDelete || path.Base(path.Dir(r.URL.Path)) != "clusterprofiles" {
				return next.RoundTrip(r)
			}
			mu.Lock()
			running++
			if most = max(most, running); running == workers && !isClosed(full) {
				close(full)
			}
			mu.Unlock()
			<-full // the first wait until there are as many as there may be
			response, err := next.RoundTrip(r)
			mu.Lock()
			running--
			mu.Unlock()
			return response, err
		})
	})
	apitest.Must(t, u.run(t.Context()))
	f.gone()
	if most != workers {
		t.Errorf("%d at a time, want %d", most, workers)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A webhook that refuses to delete one object does not prevent deleting others.
func TestUninstallDeletesWhatItCan(t *testing.T) {
	f := newFixture(t)
	f.free()
	first, second := f.clusters[0], f.clusters[1]
	f.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodDelete && call.Mentions(first) {
			return apitest.Fault{Status: 500, Reason: "InternalError", Message: "refused"}
		}
		return apitest.Fault{}
	})
	u := f.uninstaller(false)
	f.step(u)
	if _, err := u.takeStep(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want the refusal", err)
	}
	if f.Find(ocmtest.Addon(second)) {
		t.Error("the other addon was not deleted")
	}
	f.wire.Fail(nil)
	apitest.Must(t, u.run(t.Context()))
	f.gone()
}

func TestUninstallSaysWhatItStillWaitsFor(t *testing.T) {
	f := newFixture(t)
	u := f.uninstaller(false)
	// It logs what it waits for before its time is nearly over.
	f.step(u)
	f.step(u)
	u.opts.Timeout = 300 * time.Millisecond
	err := u.run(t.Context())
	want := "still waiting for the addon to be removed from " + strings.Join(f.clusters, ", ")
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestUninstallContinuesAfterErrors(t *testing.T) {
	for _, fault := range []apitest.Fault{
		{Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable"},
		{Status: http.StatusUnauthorized, Reason: "Unauthorized"},
	} {
		t.Run(fault.Reason, func(t *testing.T) {
			f := newFixture(t)
			f.free()
			// Each write fails once; the next step finds it missing.
			failed := map[string]bool{}
			f.wire.Fail(func(call apitest.Call) apitest.Fault {
				if !call.IsWrite() || failed[call.Path] {
					return apitest.Fault{}
				}
				failed[call.Path] = true
				return fault
			})
			if err := f.uninstaller(false).run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(failed) != 10 {
				t.Errorf("%d writes failed once, want 10: strategy, two addons, two profiles, two slices, a revision with its rights",
					len(failed))
			}
			f.expect("profiles", f.profiles(f.clusters[0]), "another-managers theirs")
		})
	}
}

// The hook's token is not accepted for a moment, for any request.
func TestUninstallContinuesAfterARefusedToken(t *testing.T) {
	f := newFixture(t)
	f.free()
	var mu sync.Mutex
	refused := map[string]bool{}
	f.wire.Fail(func(call apitest.Call) apitest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if key := call.String(); !refused[key] {
			refused[key] = true
			return apitest.Fault{Status: http.StatusUnauthorized, Reason: "Unauthorized"}
		}
		return apitest.Fault{}
	})
	apitest.Must(t, f.uninstaller(false).run(t.Context()))
	f.gone()
}

// A webhook may refuse a deletion for a moment, too: with the same reason as a missing
// right.
func TestUninstallContinuesAfterARefusalOfAWebhook(t *testing.T) {
	f := newFixture(t)
	f.free()
	var mu sync.Mutex
	refused := map[string]bool{} // by cluster
	f.webhook(func(review *admissionv1.AdmissionRequest) bool {
		mu.Lock()
		defer mu.Unlock()
		again := refused[review.Namespace]
		refused[review.Namespace] = refused[review.Namespace] || review.DryRun == nil || !*review.DryRun
		return again
	})
	f.Eventually("the webhook refuses", func() string {
		if err := f.Delete(t.Context(), ocmtest.Addon(f.clusters[0]), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Sprintf("got %v", err)
		}
		return ""
	})
	apitest.Must(t, f.uninstaller(false).run(t.Context()))
	if len(refused) != 2 {
		t.Errorf("%d addons were refused once, want both", len(refused))
	}
	f.gone()
}

// webhook has a webhook decide on the deletion of addons, for as long as the test runs.
func (f *fixture) webhook(allowed func(*admissionv1.AdmissionRequest) bool) {
	f.T.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: allowed(review.Request),
			// As controller-runtime's webhooks deny, with a text that resembles a missing right.
			Result: &metav1.Status{
				Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
				Message: `addons "x" is forbidden: User "y" cannot remove it today`,
			},
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	f.T.Cleanup(server.Close)
	f.create(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name("refuse")},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "refuse.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			// The API server asks for a moment after this has been deleted, when the webhook no longer serves.
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL,
				CABundle: pem.EncodeToMemory(
					&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule: admissionregistrationv1.Rule{
					APIGroups:   []string{"addon.open-cluster-management.io"},
					APIVersions: []string{"*"}, Resources: []string{"managedclusteraddons"},
				},
			}},
		}},
	})
}

func TestUninstallGivesUpWithoutRights(t *testing.T) {
	f := newFixture(t)
	nobody := apitest.NewClient(t, hub.User(t, "nobody"), f.Scheme())
	err := (&uninstaller{client: nobody, opts: Options{Namespace: f.installed, Timeout: time.Hour}, every: time.Millisecond}).run(t.Context())
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the uninstall hook lacks a right") {
		t.Errorf("got %v, want forbidden", err)
	}
}

// TestUninstallDoesNothingWhenAppliedWithTheRest: "helm template" renders the hook, too, so
// kubectl or another tool may create its Job where nothing is being uninstalled.
func TestUninstallDoesNothingWhenAppliedWithTheRest(t *testing.T) {
	f := newFixture(t)
	f.free()
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.installed, Name: "cluster-inventory-applied-without-hooks",
	}}
	f.create(marker)
	apitest.Must(t, f.uninstaller(false).run(t.Context()))
	for _, call := range f.wire.Calls() {
		if call.IsWrite() {
			t.Errorf("it wrote: %s", call)
		}
	}
	for _, cluster := range f.clusters {
		f.expect("profiles of "+cluster, f.profiles(cluster), "another-managers ours theirs")
		if !f.addon(cluster).DeletionTimestamp.IsZero() {
			t.Errorf("the addon of %s is being deleted", cluster)
		}
	}
	// What the documents say to do in order to uninstall.
	f.MustDelete(marker)
	apitest.Must(t, f.uninstaller(false).run(t.Context()))
	f.gone()
}

// TestUninstallStopsWhenEverythingIsApplied: another sync of the whole chart may come while the
// hook runs.
func TestUninstallStopsWhenEverythingIsApplied(t *testing.T) {
	f := newFixture(t)
	u := f.uninstaller(false)
	done, err := u.advance(t.Context())
	apitest.Must(t, err)
	if done {
		t.Fatal("done at once")
	}
	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.installed, Name: "cluster-inventory-applied-without-hooks",
	}})
	apitest.Must(t, u.run(t.Context()))
	for _, cluster := range f.clusters {
		if !f.addon(cluster).DeletionTimestamp.IsZero() {
			t.Errorf("the addon of %s is being deleted", cluster)
		}
	}
}

func TestATimeoutIsReportedInOneLine(t *testing.T) {
	u := &uninstaller{opts: Options{Timeout: time.Minute}}
	refused := errors.New("connection refused")
	for progress, want := range map[string]string{
		"":     "after 1m0s still waiting for the hub to respond; last error: connection refused",
		"copy": "after 1m0s still waiting for copy; last error: connection refused",
	} {
		u.progress = progress
		if err := u.timedOut(refused); err.Error() != want || !errors.Is(err, refused) {
			t.Errorf("it ended with %q, want %q", err, want)
		}
	}
	u.progress = "copy"
	if err := u.timedOut(nil); err.Error() != "after 1m0s still waiting for copy" {
		t.Errorf("without an error of a step it ended with %q", err)
	}
}
