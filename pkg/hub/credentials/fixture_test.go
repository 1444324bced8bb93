package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// hubWithoutAccounts does not serve ManagedServiceAccounts, and on restoredHub their CRD is
// deleted and recreated.
var (
	hub                = apitest.New(apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount())
	hubWithoutAccounts = apitest.New(apitest.Hub(), apitest.ClusterProfile())
	restoredHub        = apitest.New(apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount())
)

func TestMain(m *testing.M) { apitest.Main(m, hub, hubWithoutAccounts, restoredHub) }

const (
	// patience is how long a test waits for what must happen. While the CRD of accounts
	// is new, a manager that finds copies of an earlier one waits for a minute before it
	// believes that an account is missing.
	patience = time.Minute + watch.RestoreTime

	// quietly is how long nothing must happen.
	quietly = time.Second

	managerNamespace = "inventory-system"
	managerName      = "cluster-inventory-manager"
	managerUser      = "system:serviceaccount:" + managerNamespace + ":" + managerName

	sourceRole = "open-cluster-management:cluster-inventory:token-source"
	targetRole = "open-cluster-management:cluster-inventory:token-target"

	syncLabel        = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	targetAnnotation = "inventory.open-cluster-management.io/sync-to-namespaces"
)

// managerRights are the rights that doc.go lists, and those that package upstream needs
// to see its syncer.
func managerRights() []client.Object {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	named := func(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
		r.ResourceNames = names
		return r
	}
	role := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	}
	return []client.Object{
		role(sourceRole, rule("", "secrets", "get")),
		role(targetRole, rule("", "secrets", "get", "list", "watch", "create", "patch", "delete")),
		role("test-manager",
			rule("authentication.open-cluster-management.io", "managedserviceaccounts", "list", "watch"),
			rule("multicluster.x-k8s.io", "clusterprofiles", "list", "watch"),
			rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch"),
			rule("events.k8s.io", "events", "create"),
			named(rule("rbac.authorization.k8s.io", "clusterroles", "list", "watch"), "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"),
			named(rule("rbac.authorization.k8s.io", "clusterroles", "bind"), sourceRole, targetRole),
			rule("rbac.authorization.k8s.io", "rolebindings", "create"),
			named(rule("rbac.authorization.k8s.io", "rolebindings", "get", "list", "watch", "patch", "delete"),
				sourceRole, targetRole),
		),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test-manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test-manager"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerUser}},
		},
	}
}

// rule is a Rule with the results that a test sets; other pairs are not selected.
type rule struct {
	mu      sync.Mutex
	answers map[types.NamespacedName]selection.Result
	broken  string // the namespace for which there is no answer
	lagging bool   // the hub denies everything, and the caches do not show that yet
	changed func(types.NamespacedName)
	touched func(types.NamespacedName)
	listed  client.Reader
	asked   func(pair types.NamespacedName) // unless nil, called before each answer
}

func (r *rule) Selected(_ context.Context, pair types.NamespacedName, _ bool) (selection.Result, error) {
	if r.asked != nil {
		r.asked(pair)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if pair.Namespace == r.broken {
		return selection.Result{}, errors.New("the rule is broken")
	}
	if answer, ok := r.answers[pair]; ok {
		return answer, nil
	}
	return selection.Result{Answer: selection.No, Why: "is not bound there"}, nil
}

func (r *rule) ConfirmYes(ctx context.Context, pair types.NamespacedName) (selection.Result, error) {
	r.mu.Lock()
	lagging := r.lagging
	r.mu.Unlock()
	if lagging {
		return selection.Result{Why: "is not bound there any more"}, nil
	}
	return r.Selected(ctx, pair, false)
}

// lag sets whether the hub denies what the caches allow.
func (r *rule) lag(lagging bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lagging = lagging
}

func (r *rule) Namespaces(ctx context.Context, cluster string) ([]string, error) {
	list := &inventoryv1alpha1.ClusterProfileList{}
	err := r.listed.List(ctx, list)
	var namespaces []string
	for _, profile := range list.Items {
		if profile.Name == cluster {
			namespaces = append(namespaces, profile.Namespace)
		}
	}
	return namespaces, err
}

func (r *rule) Subscribe(changed func(types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = changed
}

func (r *rule) SubscribeEarly(touched func(types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touched = touched
}

func (r *rule) SubscribeDefinitions(func(context.Context)) {}

// breakFor makes the rule fail for a namespace.
func (r *rule) breakFor(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = namespace
}

func (r *rule) say(namespace, cluster string, answer selection.Result) {
	pair := types.NamespacedName{Namespace: namespace, Name: cluster}
	r.mu.Lock()
	r.answers[pair] = answer
	changed := r.changed
	r.mu.Unlock()
	if changed != nil {
		changed(pair)
	}
}

// world is a hub as its administrator sees it, and the manager on it.
type world struct {
	*ocmtest.Hub
	srv  *apitest.Server
	wire *apitest.Wire
	rule *rule
	opts Options

	syncer     upstream.Override // what the administrator says of upstream's syncer
	syncerTime *testingclock.FakeClock

	stop  func()
	creds *Credentials
	mgr   manager.Manager
}

var once sync.Map

func newWorld(t testing.TB) *world { return newWorldOn(t, hub) }

func newWorldOn(t testing.TB, srv *apitest.Server) *world {
	t.Helper()
	administrator := ocmtest.New(t, srv.Config(t))
	w := &world{
		Hub: administrator, srv: srv, wire: &apitest.Wire{},
		rule:       &rule{answers: map[types.NamespacedName]selection.Result{}, listed: administrator},
		syncerTime: testingclock.NewFakeClock(time.Now()),
		stop:       func() {},
	}
	w.Patience = patience
	w.opts = Options{
		Mode: ModeEnabled, RequireTarget: true, Rule: w.rule,
		ServiceAccount: types.NamespacedName{Namespace: managerNamespace, Name: managerName},
		Metrics:        metrics.New(metrics.Options{}),
		reportDelay:    time.Hour, // except in tests of events
	}
	if _, done := once.LoadOrStore(srv, true); !done {
		w.MustCreate(managerRights()...)
	}
	t.Cleanup(w.clear)
	return w
}

// clear removes everything the next test's manager would act on.
func (w *world) clear() {
	w.stop()
	mine := client.MatchingLabels{"inventory.open-cluster-management.io/credential": "true"}
	w.Clear(&authv1beta1.ManagedServiceAccountList{})
	w.Clear(&inventoryv1alpha1.ClusterProfileList{})
	w.Clear(&corev1.SecretList{}, mine)
	for _, name := range []string{sourceRole, targetRole} {
		w.Clear(&rbacv1.RoleBindingList{}, client.MatchingFields{"metadata.name": name})
	}
}

// start runs the manager, in place of one that runs.
func (w *world) start() {
	w.T.Helper()
	w.stop()
	mgr := ocmtest.NewManager(w.T, w.wire.Tap(w.srv.User(w.T, managerUser)), nil)
	ctx, cancel := context.WithCancel(w.T.Context())
	profiles, err := mgr.GetCache().GetInformer(ctx, &inventoryv1alpha1.ClusterProfile{})
	if err != nil {
		w.T.Fatal(err)
	}
	if w.opts.UpstreamSyncer, err = upstream.AddSyncer(mgr, w.syncer, w.syncerTime, func(bool, bool) {}); err != nil {
		w.T.Fatal(err)
	}
	if w.opts.Clock == nil {
		w.opts.Clock = clock.RealClock{}
	}
	w.opts.Definitions = watch.NewDefinitions(mgr.GetAPIReader(), w.opts.Clock)
	apitest.Must(w.T, w.opts.Definitions.AddTo(mgr, "definitions"))
	w.opts.Events, err = notices.Add(mgr, w.opts.Clock)
	apitest.Must(w.T, err)
	creds, err := Add(ctx, mgr, w.opts)
	if err != nil {
		w.T.Fatal(err)
	}
	// What the inventory does once the cache has a profile, or has lost it.
	look := func(obj any) {
		if lost, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = lost.Obj
		}
		creds.enqueuePair(client.ObjectKeyFromObject(obj.(client.Object)))
	}
	if _, err := profiles.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look,
	}); err != nil {
		w.T.Fatal(err)
	}
	w.creds, w.mgr = creds, mgr
	stop := apitest.Run(w.T, mgr.Start)
	w.stop = func() { cancel(); stop() }
	w.T.Cleanup(w.stop)
}

// team makes a consumer's namespace.
func (w *world) team() string {
	w.T.Helper()
	return w.Namespace("team", nil)
}

// cluster makes a cluster's namespace.
func (w *world) cluster(name string) string {
	w.T.Helper()
	w.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

// publish makes the profile of a cluster in a namespace, and the rule say so.
func (w *world) publish(namespace, cluster string) *inventoryv1alpha1.ClusterProfile {
	w.T.Helper()
	profile := ocmtest.OurProfile(namespace, cluster)
	w.MustCreate(profile)
	w.rule.say(namespace, cluster, selection.Result{Answer: selection.Yes})
	return profile
}

// account makes an account with a token, to be copied to the namespaces.
func (w *world) account(cluster, name string, targets ...string) *authv1beta1.ManagedServiceAccount {
	w.T.Helper()
	account := w.Account(cluster, name, targets...)
	w.Rotate(account)
	return account
}

// copied returns the copy of an account in a namespace, or nil.
func (w *world) copied(namespace, cluster, account string) *corev1.Secret {
	w.T.Helper()
	secret := &corev1.Secret{}
	err := w.Get(w.T.Context(), types.NamespacedName{Namespace: namespace, Name: cluster + "-" + account}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return secret
}

// holds waits until there is a copy with this token.
func (w *world) holds(namespace, cluster, account, token string) *corev1.Secret {
	w.T.Helper()
	var found *corev1.Secret
	w.Eventually("the copy holds the token", func() string {
		if found = w.copied(namespace, cluster, account); found == nil {
			return fmt.Sprintf("no copy %s/%s-%s; condition: %+v", namespace, cluster, account, w.condition(cluster))
		}
		if string(found.Data["token"]) != token {
			return "the copy holds another token"
		}
		return ""
	})
	return found
}

// hasNoCopy waits until there is no copy.
func (w *world) hasNoCopy(namespace, cluster, account string) {
	w.T.Helper()
	w.Eventually("the copy is gone", func() string {
		if w.copied(namespace, cluster, account) != nil {
			return fmt.Sprintf("the copy %s/%s-%s is there; condition: %+v", namespace, cluster, account, w.condition(cluster))
		}
		return ""
	})
}

// bound waits until a RoleBinding of a namespace is there, or is not.
func (w *world) bound(namespace, role string, want bool) {
	w.T.Helper()
	w.Eventually("the RoleBinding comes or goes", func() string {
		err := w.Get(w.T.Context(), types.NamespacedName{Namespace: namespace, Name: role}, &rbacv1.RoleBinding{})
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if (err == nil) != want {
			return fmt.Sprintf("RoleBinding %s/%s: exists is %t, want %t", namespace, role, err == nil, want)
		}
		return ""
	})
}

// condition is what the condition of a cluster must be, zero while that is not known.
func (w *world) condition(cluster string) conditions.Desired {
	w.T.Helper()
	desired, err := w.creds.Desired(w.T.Context(), cluster)
	if err != nil {
		w.T.Fatal(err)
	}
	return ptr.Deref(desired, conditions.Desired{})
}

// synced waits until the condition says that nothing is wrong.
func (w *world) synced(cluster string) {
	w.T.Helper()
	w.says(cluster, "True", "Copied", "All tokens of this cluster's accounts are copied.")
}

// says waits until the condition is this.
func (w *world) says(cluster, status, reason, message string) {
	w.T.Helper()
	w.Eventually("the condition is as expected", func() string {
		got := w.condition(cluster)
		return cmp.Diff([]string{status, reason, message}, []string{string(got.Status), got.Reason, got.Message})
	})
}

// mentions waits until the condition has this reason, and these words.
func (w *world) mentions(cluster, reason string, words ...string) {
	w.T.Helper()
	w.Eventually("the condition mentions the words", func() string {
		got := w.condition(cluster)
		for _, word := range words {
			if !strings.Contains(got.Message, word) {
				return fmt.Sprintf("no %q in %+v", word, got)
			}
		}
		if got.Reason != reason {
			return fmt.Sprintf("reason %s: %+v", got.Reason, got)
		}
		return ""
	})
}

// leftover is a copy as an earlier manager made it, of an account called reader.
func leftover(cluster, team string, profile *inventoryv1alpha1.ClusterProfile) *corev1.Secret {
	return target.DesiredCopy(target.Want{
		Account: types.NamespacedName{Namespace: cluster, Name: "reader"}, Namespace: team,
		Owner: target.Owner{UID: profile.UID, Name: profile.Name},
		Token: bearer.Token{Token: []byte("x"), CA: []byte("y"), Expires: time.Now()},
	})
}

// leftBinding is the RoleBinding of an earlier manager in a namespace.
func leftBinding(namespace, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role, Labels: target.Labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
	}
}
