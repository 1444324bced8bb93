package credentials

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
)

var hub = apitest.New(apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount())

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	apitest.Main(m, hub)
}

const (
	// patience is how long a test waits for what must happen.
	patience = time.Minute

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

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1beta1.Install, authv1beta1.AddToScheme, inventoryv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// rights are those doc.go lists.
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
			named(rule("addon.open-cluster-management.io", "managedclusteraddons", "list", "watch"), "cluster-inventory"),
			named(rule("addon.open-cluster-management.io", "managedclusteraddons/status", "patch"), "cluster-inventory"),
			rule("apiextensions.k8s.io", "customresourcedefinitions", "list", "watch"),
			named(rule("rbac.authorization.k8s.io", "clusterroles", "list", "watch"), "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"),
			named(rule("rbac.authorization.k8s.io", "clusterroles", "bind"), sourceRole, targetRole),
			rule("rbac.authorization.k8s.io", "rolebindings", "get", "list", "watch", "create", "patch"),
			named(rule("rbac.authorization.k8s.io", "rolebindings", "delete"), sourceRole, targetRole),
		),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test-manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test-manager"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerUser}},
		},
	}
}

// rule is a Rule that a test turns. What it was not told is not selected.
type rule struct {
	mu      sync.Mutex
	answers map[types.NamespacedName]selection.Result
	changed func(types.NamespacedName)
	listed  client.Reader
}

func (r *rule) Selected(_ context.Context, pair types.NamespacedName) (selection.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer, ok := r.answers[pair]; ok {
		return answer, nil
	}
	return selection.Result{Answer: selection.No, Why: "is not bound there"}, nil
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
	client.Client
	t    testing.TB
	srv  *apitest.Server
	wire *apitest.Wire
	rule *rule
	opts Options

	syncer upstream.Override // what the administrator says of upstream's syncer

	suffix string
	stop   func()
	creds  *Credentials
	mgr    manager.Manager
}

var once sync.Map

func newWorld(t testing.TB) *world { return newWorldOn(t, hub) }

func newWorldOn(t testing.TB, srv *apitest.Server) *world {
	t.Helper()
	c, err := client.New(srv.Config(t), client.Options{Scheme: testScheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Client: c, t: t, srv: srv, wire: &apitest.Wire{},
		rule:   &rule{answers: map[types.NamespacedName]selection.Result{}, listed: c},
		suffix: fmt.Sprintf("-%d", time.Now().UnixNano()%1e9),
		stop:   func() {},
	}
	w.opts = Options{
		Mode: ModeEnabled, RequireTarget: true, Rule: w.rule,
		ServiceAccount: types.NamespacedName{Namespace: managerNamespace, Name: managerName},
	}
	if _, done := once.LoadOrStore(srv, true); !done {
		w.create(managerRights()...)
	}
	t.Cleanup(w.clear)
	return w
}

// clear leaves nothing for the next test's manager to do.
func (w *world) clear() {
	w.stop()
	ctx := context.WithoutCancel(w.t.Context())
	mine := client.MatchingLabels{"inventory.open-cluster-management.io/credential": "true"}
	for _, left := range []struct {
		list client.ObjectList
		opts []client.ListOption
	}{
		{list: &authv1beta1.ManagedServiceAccountList{}},
		{list: &addonv1beta1.ManagedClusterAddOnList{}},
		{list: &inventoryv1alpha1.ClusterProfileList{}},
		{list: &corev1.SecretList{}, opts: []client.ListOption{mine}},
		{list: &rbacv1.RoleBindingList{}, opts: []client.ListOption{mine}},
	} {
		if err := w.List(ctx, left.list, left.opts...); apimeta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			w.t.Errorf("clear: %v", err)
			continue
		}
		_ = apimeta.EachListItem(left.list, func(obj runtime.Object) error {
			found := obj.(client.Object)
			found.SetFinalizers(nil)
			_ = w.Patch(ctx, found, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			_ = w.Delete(ctx, found)
			return nil
		})
	}
}

// start runs the manager, in place of one that runs.
func (w *world) start() {
	w.t.Helper()
	w.stop()
	byObject := CacheOptions()
	byObject[&addonv1beta1.ManagedClusterAddOn{}] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", "cluster-inventory")}
	mgr, err := manager.New(w.wire.Tap(w.srv.User(w.t, managerUser)), manager.Options{
		Scheme:     testScheme(),
		Logger:     logr.Discard(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{ReaderFailOnMissingInformer: true, DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	profiles, err := mgr.GetCache().GetInformer(ctx, &inventoryv1alpha1.ClusterProfile{})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.opts.UpstreamSyncer, err = upstream.AddSyncer(mgr, w.syncer); err != nil {
		w.t.Fatal(err)
	}
	creds, err := Add(ctx, mgr, w.opts)
	if err != nil {
		w.t.Fatal(err)
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
		w.t.Fatal(err)
	}
	w.creds, w.mgr = creds, mgr
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("manager: %v", err)
		}
	}
	w.t.Cleanup(w.stop)
}

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

func edit[T client.Object](w *world, obj T, change func(T)) {
	w.t.Helper()
	w.patch(obj, func() { change(obj) }, w.Patch)
}

func editStatus[T client.Object](w *world, obj T, change func(T)) {
	w.t.Helper()
	w.patch(obj, func() { change(obj) }, func(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
		return w.Status().Patch(ctx, obj, patch)
	})
}

func (w *world) patch(obj client.Object, change func(), write func(context.Context, client.Object, client.Patch, ...client.PatchOption) error) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.t.Fatalf("get %T %s: %v", obj, obj.GetName(), err)
	}
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := write(w.t.Context(), obj, client.MergeFrom(before)); err != nil {
		w.t.Fatalf("edit %T %s: %v", obj, obj.GetName(), err)
	}
}

func (w *world) name(base string) string { return base + w.suffix }

// team makes a consumer's namespace.
func (w *world) team() string {
	w.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	w.create(ns)
	return ns.Name
}

// cluster makes a cluster's namespace and addon.
func (w *world) cluster(name string) string {
	w.t.Helper()
	w.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "cluster-inventory"}},
	)
	return name
}

// publish makes the profile of a cluster in a namespace, and the rule say so.
func (w *world) publish(namespace, cluster string) *inventoryv1alpha1.ClusterProfile {
	w.t.Helper()
	profile := profileOf(namespace, cluster)
	w.create(profile)
	w.rule.say(namespace, cluster, selection.Result{Answer: selection.Yes})
	return profile
}

func profileOf(namespace, cluster string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster, Labels: map[string]string{
			"app.kubernetes.io/managed-by": "cluster-inventory-addon", "open-cluster-management.io/cluster-name": cluster,
			"x-k8s.io/cluster-manager": "open-cluster-management",
		}},
		Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
	}
}

// account makes an account with a token, to be copied to the namespaces.
func (w *world) account(cluster, name string, targets ...string) *authv1beta1.ManagedServiceAccount {
	w.t.Helper()
	account := w.tokenless(cluster, name, targets...)
	w.rotate(account)
	return account
}

func (w *world) tokenless(cluster, name string, targets ...string) *authv1beta1.ManagedServiceAccount {
	w.t.Helper()
	account := &authv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: name,
			Labels:      map[string]string{syncLabel: "true"},
			Annotations: map[string]string{targetAnnotation: strings.Join(targets, ",")},
		},
		Spec: authv1beta1.ManagedServiceAccountSpec{Rotation: authv1beta1.ManagedServiceAccountRotation{Enabled: true, Validity: metav1.Duration{Duration: time.Hour}}},
	}
	w.create(account)
	return account
}

// rotate does what the spoke's agent does: the Secret, then the status. It returns
// the new token.
func (w *world) rotate(account *authv1beta1.ManagedServiceAccount) string {
	w.t.Helper()
	expires := time.Now().Add(time.Hour)
	token := newToken(expires)
	w.store(account, token, certificate())
	w.report(account, account.Name, expires)
	return token
}

// store writes the account's Secret.
func (w *world) store(account *authv1beta1.ManagedServiceAccount, token, ca string) *corev1.Secret {
	w.t.Helper()
	secret := sourceSecret(account, token, ca)
	err := w.Create(w.t.Context(), secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = w.Update(w.t.Context(), secret)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func sourceSecret(account *authv1beta1.ManagedServiceAccount, token, ca string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace, Name: account.Name,
			Labels:          map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "authentication.open-cluster-management.io/v1beta1", Kind: "ManagedServiceAccount", Name: account.Name, UID: account.UID}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"token": []byte(token), "ca.crt": []byte(ca)},
	}
}

// report writes the account's status. Every report of an account is of another
// second.
func (w *world) report(account *authv1beta1.ManagedServiceAccount, secret string, expires time.Time) {
	w.t.Helper()
	editStatus(w, account, func(a *authv1beta1.ManagedServiceAccount) {
		refreshed := time.Now().Truncate(time.Second)
		if last := a.Status.TokenSecretRef; last != nil && !refreshed.After(last.LastRefreshTimestamp.Time) {
			refreshed = last.LastRefreshTimestamp.Add(time.Second)
		}
		a.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: secret, LastRefreshTimestamp: metav1.NewTime(refreshed)}
		a.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(expires.Truncate(time.Second)))
	})
}

// newToken is a token as the API server of a spoke makes it, unlike any other.
func newToken(expires time.Time) string {
	payload, err := json.Marshal(map[string]any{"exp": expires.Unix(), "sub": "system:serviceaccount:agents:a"})
	if err != nil {
		panic(err)
	}
	signature := make([]byte, 256)
	if _, err := rand.Read(signature); err != nil {
		panic(err)
	}
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(payload) + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func certificate() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("not looked into")}))
}

// copied returns the copy of an account in a namespace, or nil.
func (w *world) copied(namespace, cluster, account string) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	err := w.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: cluster + "-" + account}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// holds waits until there is a copy with this token.
func (w *world) holds(namespace, cluster, account, token string) *corev1.Secret {
	w.t.Helper()
	var found *corev1.Secret
	w.eventually(func() string {
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

// lacks waits until there is no copy.
func (w *world) lacks(namespace, cluster, account string) {
	w.t.Helper()
	w.eventually(func() string {
		if w.copied(namespace, cluster, account) != nil {
			return fmt.Sprintf("the copy %s/%s-%s is there; condition: %+v", namespace, cluster, account, w.condition(cluster))
		}
		return ""
	})
}

// bound waits until a RoleBinding of a namespace is there, or is not.
func (w *world) bound(namespace, role string, want bool) {
	w.t.Helper()
	w.eventually(func() string {
		err := w.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: role}, &rbacv1.RoleBinding{})
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if (err == nil) != want {
			return fmt.Sprintf("RoleBinding %s/%s: exists is %t, want %t", namespace, role, err == nil, want)
		}
		return ""
	})
}

func (w *world) condition(cluster string) metav1.Condition {
	w.t.Helper()
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := w.Get(w.t.Context(), types.NamespacedName{Namespace: cluster, Name: "cluster-inventory"}, addon); err != nil {
		w.t.Fatal(err)
	}
	return ptr.Deref(apimeta.FindStatusCondition(addon.Status.Conditions, "CredentialsSynced"), metav1.Condition{})
}

// says waits until the condition is this.
func (w *world) says(cluster, status, reason, message string) {
	w.t.Helper()
	w.eventually(func() string {
		got := w.condition(cluster)
		return cmp.Diff([]string{status, reason, message}, []string{string(got.Status), got.Reason, got.Message})
	})
}

// mentions waits until the condition has this reason, and these words.
func (w *world) mentions(cluster, reason string, words ...string) {
	w.t.Helper()
	w.eventually(func() string {
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

func (w *world) eventually(what func() string) {
	w.t.Helper()
	var missing string
	err := wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		missing = what()
		return missing == "", nil
	})
	if err != nil {
		w.t.Fatalf("after %s: %s", patience, missing)
	}
}

// stays fails if what becomes something other than "" within a while.
func (w *world) stays(what func() string) {
	w.t.Helper()
	var broken string
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, quietly, true, func(context.Context) (bool, error) {
		broken = what()
		return broken != "", nil
	})
	if err == nil {
		w.t.Fatal(broken)
	}
}

// quiet fails if the manager writes anything within a while.
func (w *world) quiet() {
	w.t.Helper()
	w.stays(func() string {
		if writes := w.wire.Writes(); len(writes) > 0 {
			return fmt.Sprintf("writes: %v", sent(writes))
		}
		return ""
	})
}

// sent lists writes as "VERB resource".
func sent(calls []apitest.Call) []string {
	list := []string{}
	for _, call := range calls {
		list = append(list, call.Method+" "+call.Resource)
	}
	slices.Sort(list)
	return list
}

// leftover is a copy as an earlier manager made it, of an account called reader.
func leftover(cluster, team string, profile *inventoryv1alpha1.ClusterProfile) *corev1.Secret {
	return target.DesiredCopy(target.Want{
		Account: types.NamespacedName{Namespace: cluster, Name: "reader"}, Namespace: team,
		Owner:   target.Owner{UID: profile.UID, Name: profile.Name},
		Content: target.Content{Token: []byte("x"), CA: []byte("y"), Expires: time.Now()},
	})
}
