package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/orders"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	rules "open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// TestOrders explores all orders of a small world with one account, whose token is copied to
// the namespaces that it names.
func TestOrders(t *testing.T) {
	orders.SearchAll(t, accountScenarios(), func() orders.Part { return &copying{} })
}

// Forbidden states in addition to those that package orders defines for profiles.
const (
	copyUnentitled = "a copy where no state of the caches entitled to it"
	copyRemoved    = "a copy removed that no state of the caches denied"
	copyOfAnother  = "a copy of a token that was never the account's"
	copyOwner      = "a copy whose owner is not the profile"
	copyDoubted    = "another token in a copy while it is unknown what exists"
	copyForeign    = "a write of a Secret that is not a copy"
	copyClaimed    = "a copy whose name another account claims"
	copyUnsettled  = "a copy removed as soon as decisions lack its cluster"
	copyWrong      = "a copy missing, left or out of date when nothing happens any more"
	grantWrong     = "a right missing or left when nothing happens any more"
	grantRemoved   = "a right removed that is needed"
)

// copying is the part of the world that reconciler.go connects: one account's copies.
type copying struct {
	*Reconciler
	world *orders.World
	state *orders.State // during a step
}

// progress is what is in progress about the account, and what is on the hub in addition to
// objects with a cache.
type progress struct {
	running  bool
	plan     plan
	finally  final
	content  *bearer.Token
	read     bool
	withdraw []string // namespaces
	write    []string
	grounds  map[string]ground

	bindings map[grants.Grant]bool // RoleBindings
	tokens   []string              // that the account has had
}

// ground is what the caches said about a namespace when the plan was made.
type ground struct{ entitled, denied, unsettled, moves, wanted, claimed, mixed, trusted, mayReturn bool }

// Copies of theAccount and of theRival have the same name.
var (
	theAccount = types.NamespacedName{Namespace: "c1", Name: "my-reader"}
	theRival   = types.NamespacedName{Namespace: "c1-my", Name: "reader"}
)

func extra(s *orders.State) *progress {
	before, _ := s.Extra.(*progress)
	next := progress{}
	if before != nil {
		next = *before
	}
	next.bindings, next.grounds = maps.Clone(next.bindings), maps.Clone(next.grounds)
	if next.bindings == nil {
		next.bindings = map[grants.Grant]bool{}
	}
	s.Extra = &next
	return &next
}

type onlyReads struct {
	cache.Cache
	*orders.View
}

func (c onlyReads) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	return c.View.Get(ctx, key, into, o...)
}

func (c onlyReads) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return c.View.List(ctx, into, o...)
}

func (c onlyReads) IndexField(ctx context.Context, of client.Object, name string, by client.IndexerFunc) error {
	return c.View.IndexField(ctx, of, name, by)
}

func (c onlyReads) GetInformer(
	ctx context.Context, of client.Object, o ...cache.InformerGetOption,
) (cache.Informer, error) {
	return c.View.GetInformer(ctx, of, o...)
}

// reader is a manager that only reads.
type reader struct {
	manager.Manager
	world *orders.World
}

func (r reader) GetCache() cache.Cache       { return onlyReads{View: r.world.Cache} }
func (r reader) GetAPIReader() client.Reader { return r.world.Live }

// rights reads the RoleBindings that the search has.
type rights struct {
	client.Reader
	c *copying
}

func (r rights) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if !extra(r.c.state).bindings[grants.Of(key)] {
		return apierrors.NewNotFound(rbacv1.Resource("rolebindings"), key.Name)
	}
	return nil
}

type syncerOff struct{ UpstreamSyncer }

func (syncerOff) Unknown() string { return "" }
func (syncerOff) On() bool        { return false }

// Start implements orders.Part.
func (c *copying) Start(w *orders.World) map[string]any {
	if c.world != w {
		c.prepare(w)
	}
	s := w.State()
	of := watch.Source{CRD: source.AccountCRD, Informer: apitest.SyncedInformer{}}
	orders.Must(w.Definitions.Follow(context.Background(), w.Cache, false, of))
	ledger := target.NewLedger()
	for _, key := range s.Keys(orders.Copies) {
		see(ledger, orders.Get[*corev1.Secret](s, orders.Copies, key))
	}
	fresh := source.NewTokens(w.Live, 2, w)
	started := grants.New(nil, nil, nil, rbacv1.Subject{}, w, "orders")
	return map[string]any{
		"ledger": ledger, "findings": orders.Field(fresh, "findings").Interface(),
		"claims": orders.Field(started, "claims").Interface(), "states": orders.Field(started, "states").Interface(),
	}
}

// prepare makes what reads the state that is explored.
func (c *copying) prepare(w *orders.World) {
	c.world = w
	ctx, writer := context.Background(), secretWriter{c: c}
	copyName := func(obj client.Object) []string { return []string{target.Name(client.ObjectKeyFromObject(obj))} }
	orders.Must(w.Cache.IndexField(ctx, &authv1beta1.ManagedServiceAccount{}, source.IndexAccountByCopyName, copyName))
	accounts := source.NewAccounts(nil, target.Name)
	store := orders.Field(accounts, "filled").Addr().MethodByName("Store")
	filled := reflect.New(store.Type().In(0).Elem())
	orders.Field(filled.Interface(), "Cache").Set(reflect.ValueOf(cache.Cache(onlyReads{View: w.Cache})))
	store.Call([]reflect.Value{filled})
	c.Reconciler = &Reconciler{Credentials: &Credentials{
		mgr: reader{world: w}, accounts: accounts, tokens: source.NewTokens(w.Live, 2, w),
		copies:   target.NewCopies(w.Live, writer, target.NewLedger(), w, "orders", 0),
		grants:   grants.New(rights{c: c}, nil, nil, rbacv1.Subject{}, w, "orders"),
		failures: newFailures(w), operations: newOperations(8, time.Hour, newFailures(w), func(types.NamespacedName) {}),
		opts: Options{
			UpstreamSyncer: syncerOff{}, Definitions: w.Definitions, RequireTarget: true, Clock: w,
			Metrics: metrics.New(metrics.Options{}),
		},
	}}
}

// recall makes everything use what the state remembers.
func (c *copying) recall(s *orders.State) {
	c.state = s
	c.opts.Rule = c.world.Rule
	ledger := s.Memory["ledger"].(*target.Ledger)
	c.ledger = ledger
	orders.Field(c.copies, "ledger").Set(reflect.ValueOf(ledger))
	brake := orders.Field(c.copies, "brake")
	brake.SetZero()
	orders.Field(c.tokens, "findings").Set(reflect.ValueOf(s.Memory["findings"]))
	orders.Field(c.grants, "claims").Set(reflect.ValueOf(s.Memory["claims"]))
	orders.Field(c.grants, "states").Set(reflect.ValueOf(s.Memory["states"]))
}

// Stop implements orders.Part: what was in progress is lost.
func (c *copying) Stop(s *orders.State) {
	p := extra(s)
	*p = progress{bindings: p.bindings, tokens: p.tokens}
}

// Idle implements orders.Part.
func (c *copying) Idle(s *orders.State) bool {
	p, _ := s.Extra.(*progress)
	return p == nil || !p.running
}

// References implements orders.Part.
func (c *copying) References(*orders.State) orders.ProfileReferences { return nil }

// Delivered implements orders.Part: followers record in the ledger what they see.
func (c *copying) Delivered(
	_ *orders.World, s *orders.State, kind orders.Kind, key types.NamespacedName, before client.Object,
) {
	if kind != orders.Copies {
		return
	}
	ledger := s.Memory["ledger"].(*target.Ledger)
	switch secret := orders.Cached[*corev1.Secret](s, orders.Copies, key); {
	case secret != nil && isFollowed(secret):
		see(ledger, secret)
	case before != nil && isFollowed(before):
		ledger.Vanish(metadataOf(before))
	}
}

func isFollowed(obj client.Object) bool {
	labels := obj.GetLabels()
	return labels[contract.LabelManagedBy] == contract.ManagedBy && labels[contract.LabelCredential] == "true"
}

func see(ledger *target.Ledger, secret *corev1.Secret) {
	if isFollowed(secret) {
		ledger.See(metadataOf(secret))
	}
}

func metadataOf(obj client.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(), Finalizers: obj.GetFinalizers(),
	}}
}

// Steps implements orders.Part.
func (c *copying) Steps(_ *orders.World, s *orders.State) []orders.Step {
	var steps []orders.Step
	add := func(name string, do func(p *progress) error) {
		steps = append(steps, orders.Step{Name: name, Do: func(s *orders.State) error {
			c.recall(s)
			return do(extra(s))
		}})
	}
	p := extra(s)
	if !p.running {
		add("reconcile the account", c.reconcile)
	}
	for _, namespace := range p.withdraw {
		add("send the withdrawal from "+namespace, func(p *progress) error { return c.withdraw(p, namespace) })
	}
	if len(p.withdraw) == 0 {
		for _, namespace := range p.write {
			add("send the copy to "+namespace, func(p *progress) error { return c.put(p, namespace) })
		}
	}
	for _, key := range s.Keys(orders.Copies) {
		if isOrphan(s, orders.Get[*corev1.Secret](s, orders.Copies, key)) {
			add("send orphan "+key.String()+" to the garbage collector", func(*progress) error {
				c.state.Delete(orders.Copies, key)
				return nil
			})
		}
	}
	for grant := range p.bindings {
		if !p.running && c.isRemovable(s, grant) {
			add("send the removal of "+grant.Key().String(), func(p *progress) error { return c.revoke(p, grant) })
		}
	}
	slices.SortFunc(steps, func(a, b orders.Step) int { return strings.Compare(a.Name, b.Name) })
	return steps
}

func isOrphan(s *orders.State, secret *corev1.Secret) bool {
	return slices.ContainsFunc(secret.OwnerReferences, func(owner metav1.OwnerReference) bool {
		profile := orders.Get[*inventoryv1alpha1.ClusterProfile](s, orders.Profiles,
			types.NamespacedName{Namespace: secret.Namespace, Name: owner.Name})
		return owner.Kind == "ClusterProfile" && (profile == nil || profile.UID != owner.UID)
	})
}

// isRemovable is what Grants.Reconcile asks before it removes a RoleBinding.
func (c *copying) isRemovable(s *orders.State, grant grants.Grant) bool {
	c.recall(s)
	states := orders.Field(c.grants, "states")
	state := states.MapIndex(reflect.ValueOf(grant))
	isClaimed := state.IsValid() && state.Elem().FieldByName("claimedBy").Len() > 0
	if isReconciled, _ := s.Memory["reconciled"].(bool); !isReconciled || isClaimed {
		return false
	}
	return !grant.IsTarget() || c.ledger.Count(grant.Namespace) == 0
}

func (c *copying) revoke(p *progress, grant grants.Grant) error {
	delete(p.bindings, grant)
	if grant.IsTarget() {
		if c.secret(grant.Namespace) != nil && isFollowed(c.secret(grant.Namespace)) && !c.state.Delivering(orders.Copies) {
			return orders.Violated(grantRemoved, "%s, where there is a copy", grant.Key())
		}
	}
	return nil
}

func (c *copying) secret(namespace string) *corev1.Secret {
	return orders.Get[*corev1.Secret](c.state, orders.Copies, target.Key(theAccount, namespace))
}

// claim is Reconciler.claim without operations that are in flight.
func (c *copying) claim(p *progress, withdrawn []string) {
	if p.plan.restoring && !p.plan.known {
		return
	}
	present := func(namespace string) bool {
		return c.ledger.Known(theAccount, namespace, c.world.Now()).Present
	}
	needed, kept := grantsOf(p.plan, withdrawn, present)
	c.grants.Claim(theAccount, needed, kept)
}

// reconcile is the beginning of Reconciler.Reconcile, up to the withdrawals.
func (c *copying) reconcile(p *progress) error {
	o, err := c.observe(context.Background(), theAccount, c.world.Now(), true)
	if err != nil {
		return err
	}
	*p = progress{
		running: true, bindings: p.bindings, tokens: p.tokens, plan: decide(o), grounds: map[string]ground{},
	}
	for _, t := range o.targets {
		p.grounds[t.namespace] = c.groundsFor(t.namespace)
	}
	c.claim(p, nil)
	p.withdraw = c.present(p.plan.withdrawals())
	return c.proceed(p)
}

func (c *copying) groundsFor(namespace string) ground {
	pair := types.NamespacedName{Namespace: namespace, Name: theAccount.Namespace}
	entitled, denied := c.state.Shown(pair)
	account := orders.Cached[*authv1beta1.ManagedServiceAccount](c.state, orders.Accounts, theAccount)
	wanted := wants(account, namespace)
	rival := orders.Cached[*authv1beta1.ManagedServiceAccount](c.state, orders.Accounts, theRival)
	_, rivalDenied := c.state.Shown(types.NamespacedName{Namespace: namespace, Name: theRival.Namespace})
	return ground{
		claimed:  wants(rival, namespace) && !rivalDenied,
		entitled: entitled, denied: denied, unsettled: c.world.Unsettled(c.state, pair),
		moves: c.state.Moves(pair), wanted: wanted,
		mixed: entitled && !c.state.Entitled(pair), trusted: c.state.Trusted(),
		mayReturn: !reportsToken(account) && c.state.MayRestore(source.AccountCRD),
	}
}

// reportsToken reports whether an account stays, and has a token.
func reportsToken(account *authv1beta1.ManagedServiceAccount) bool {
	return account != nil && account.DeletionTimestamp == nil && account.Status.TokenSecretRef != nil
}

// wants reports whether an account is to be copied to a namespace.
func wants(account *authv1beta1.ManagedServiceAccount, namespace string) bool {
	return account != nil && account.DeletionTimestamp == nil && account.Labels[contract.LabelSyncToProfile] == "true" &&
		slices.Contains(strings.Split(account.Annotations[contract.AnnotationSyncToNamespaces], ","), namespace)
}

func (c *copying) present(namespaces []string) []string {
	return slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool {
		return !c.ledger.Known(theAccount, namespace, c.world.Now()).Present
	})
}

// proceed reads the token when nothing is left to withdraw, and ends when nothing is left at all.
func (c *copying) proceed(p *progress) error {
	if len(p.withdraw) > 0 {
		return nil
	}
	if !p.read {
		p.read = true
		found := p.plan.found
		switch p.plan.token {
		case unused:
			c.tokens.Forget(theAccount)
		case toRead:
			p.bindings[grants.Source(theAccount.Namespace)] = true
			next, token, err := c.tokens.Read(context.Background(), p.plan.account)
			if err != nil {
				return err
			}
			found = next
			p.content = token
		}
		p.finally = decideFinally(p.plan, found, c.world.Now())
		for _, namespace := range p.finally.withdraw {
			g := p.grounds[namespace]
			g.denied = true // because of the token
			p.grounds[namespace] = g
		}
		if p.withdraw = c.present(p.finally.withdraw); p.content != nil {
			for _, d := range p.finally.write {
				p.write = append(p.write, d.namespace)
			}
		}
		if len(p.withdraw) > 0 {
			return c.tokenDenies(p)
		}
	}
	if len(p.write) > 0 {
		return nil
	}
	c.claim(p, p.finally.withdraw)
	c.state.Memory["reconciled"] = true
	*p = progress{bindings: p.bindings, tokens: p.tokens}
	return nil
}

// tokenDenies checks that a copy is withdrawn because of its token only if that is missing, or
// the account's status names none, which may not be restored yet.
func (c *copying) tokenDenies(p *progress) error {
	secret := orders.Get[*corev1.Secret](c.state, orders.Copies, theAccount)
	account := p.plan.account
	if secret != nil && account != nil && account.Status.TokenSecretRef != nil {
		return orders.Violated(copyRemoved, "the token is there")
	}
	if p.grounds["n1"].mayReturn {
		return orders.Violated(copyRemoved, "the account may be about to be restored")
	}
	return nil
}

func (c *copying) withdraw(p *progress, namespace string) error {
	p.withdraw = slices.DeleteFunc(slices.Clone(p.withdraw), func(other string) bool { return other == namespace })
	p.bindings[grants.Target(namespace)] = true
	g := p.grounds[namespace]
	before := c.secret(namespace)
	if _, err := c.copies.Withdraw(context.Background(), theAccount, namespace, false); err != nil && !isRetried(err) {
		return err
	}
	if before != nil && c.secret(namespace) == nil && g.wanted && g.unsettled && !p.read {
		return errJoin(orders.Violated(copyUnsettled, "from %s", namespace), c.proceed(p))
	}
	if before != nil && c.secret(namespace) == nil && (g.wanted || g.mayReturn) && !g.denied {
		foreign := orders.Cached[*inventoryv1alpha1.ClusterProfile](c.state, orders.Profiles,
			types.NamespacedName{Namespace: namespace, Name: theAccount.Namespace})
		if foreign == nil || orders.IsOurs(foreign) && foreign.DeletionTimestamp == nil {
			return orders.Violated(copyRemoved, "from %s", namespace)
		}
	}
	pair := types.NamespacedName{Namespace: namespace, Name: theAccount.Namespace}
	if before != nil && c.secret(namespace) == nil && g.wanted && g.denied && !g.moves && !c.state.Denied(pair) &&
		!p.read {
		return errJoin(orders.Violated(orders.MixedRemoved, "the copy in %s", namespace), c.proceed(p))
	}
	return c.proceed(p)
}

func errJoin(first, second error) error {
	if second != nil {
		return second
	}
	return first
}

// isRetried reports whether what failed with this error is tried again.
func isRetried(err error) bool {
	return target.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, target.ErrRevoked)
}

func (c *copying) put(p *progress, namespace string) error {
	p.write = slices.DeleteFunc(slices.Clone(p.write), func(other string) bool { return other == namespace })
	p.bindings[grants.Target(namespace)] = true
	var d decision
	for _, each := range p.finally.write {
		if each.namespace == namespace {
			d = each
		}
	}
	pair := types.NamespacedName{Namespace: namespace, Name: theAccount.Namespace}
	ctx := context.Background()
	if !d.copy.Present && !c.selectedLive(ctx, pair).ok() {
		return c.proceed(p)
	}
	before := c.secret(namespace)
	err := c.copies.Put(ctx, target.Want{
		Account: theAccount, Namespace: namespace, Token: *p.content, Owner: d.profile.owner, Create: d.action == publish,
		MayCopy: func() bool { return c.mayCopy(ctx, pair, d).ok() }, Revoked: func() bool { return false },
	})
	foreign := &target.ForeignError{}
	if err != nil && !isRetried(err) && !asForeign(err, &foreign) {
		return err
	}
	after, g := c.secret(namespace), p.grounds[namespace]
	if err := c.check(p, before, after, g, d); err != nil {
		return err
	}
	if before != after && after != nil && g.mixed && before == nil {
		return errJoin(orders.Violated(orders.MixedCopied, "the copy in %s", namespace), c.proceed(p))
	}
	return c.proceed(p)
}

// check checks what a write has made of a copy.
func (c *copying) check(p *progress, before, after *corev1.Secret, g ground, d decision) error {
	if before == after || after == nil {
		return nil
	}
	isChanged := before != nil && string(before.Data["token"]) != string(after.Data["token"])
	switch {
	case before != nil && (!isFollowed(before) || isOfAnother(before)):
		return orders.Violated(copyForeign, "%s", after.Namespace)
	case before == nil && g.claimed:
		return orders.Violated(copyClaimed, "%s", after.Namespace)
	case (before == nil || isChanged) && (g.denied || !g.wanted), before == nil && !g.entitled:
		return orders.Violated(copyUnentitled, "%s: %+v", after.Namespace, g)
	case isChanged && !g.entitled && !g.trusted:
		return orders.Violated(copyDoubted, "%s: %+v", after.Namespace, g)
	case !slices.Contains(p.tokens, string(after.Data["token"])):
		return orders.Violated(copyOfAnother, "%s", after.Namespace)
	case len(after.OwnerReferences) != 1 || after.OwnerReferences[0].UID == "",
		d.profile.owner.UID != "" && after.OwnerReferences[0].UID != d.profile.owner.UID, before == nil && isOrphan(c.state, after):
		return orders.Violated(copyOwner, "%s", after.Namespace)
	}
	return nil
}

// isOfAnother reports whether a copy is that of another account.
func isOfAnother(copied *corev1.Secret) bool {
	account, ok := target.SourceOf(copied)
	return ok && account != theAccount
}

// Check implements orders.Part.
func (c *copying) Check(_ *orders.World, s *orders.State) error {
	c.recall(s)
	account := orders.Get[*authv1beta1.ManagedServiceAccount](s, orders.Accounts, theAccount)
	token := orders.Get[*corev1.Secret](s, orders.Copies, theAccount)
	p := extra(s)
	isUsable := account != nil && account.Status.TokenSecretRef != nil && token != nil
	if (!isUsable || !reportsToken(account)) && s.MayRestore(source.AccountCRD) {
		return nil
	}
	anywhere := false
	for _, namespace := range []string{"n1", "n2"} {
		pair := types.NamespacedName{Namespace: namespace, Name: theAccount.Namespace}
		entitled, denied := s.Said(pair)
		profile := orders.Get[*inventoryv1alpha1.ClusterProfile](s, orders.Profiles, pair)
		isOurs := orders.IsOurs(profile)
		secret := c.secret(namespace)
		isCopy := secret != nil && isFollowed(secret) && !isOfAnother(secret)
		wanted := wants(account, namespace) && isUsable
		isClaimed := wants(orders.Get[*authv1beta1.ManagedServiceAccount](s, orders.Accounts, theRival), namespace)
		switch {
		case wanted && entitled && isOurs && secret == nil && !isClaimed,
			isCopy && (!wanted || denied || profile != nil && !isOurs):
			return orders.Violated(copyWrong, "%s: wanted %t, entitled %t, there %t", namespace, wanted, entitled, isCopy)
		case isCopy && entitled && (string(secret.Data["token"]) != string(token.Data["token"]) ||
			secret.OwnerReferences[0].UID != profile.UID):
			return orders.Violated(copyWrong, "%s has another token or owner", namespace)
		}
		has := p.bindings[grants.Target(namespace)]
		if has != isCopy && (entitled || denied) && (secret == nil || isCopy) {
			return orders.Violated(grantWrong, "to copies in %s: %t, and a copy there: %t", namespace, has, isCopy)
		}
		anywhere = anywhere || isCopy
	}
	if has := p.bindings[grants.Source(theAccount.Namespace)]; has && !anywhere && account == nil {
		return orders.Violated(grantWrong, "to the token, which is copied nowhere")
	}
	return nil
}

// secretWriter writes Secrets to the state that is explored.
type secretWriter struct {
	client.Client
	c *copying
}

var secrets = schema.GroupResource{Resource: "secrets"}

func (w secretWriter) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	key := client.ObjectKeyFromObject(obj)
	if orders.Get[*corev1.Secret](w.c.state, orders.Copies, key) != nil {
		return apierrors.NewAlreadyExists(secrets, key.Name)
	}
	w.c.state.Create(orders.Copies, obj)
	return nil
}

func (w secretWriter) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	key := client.ObjectKeyFromObject(obj)
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	now := orders.Get[*corev1.Secret](w.c.state, orders.Copies, key)
	switch only := options.Preconditions; {
	case now == nil:
		return apierrors.NewNotFound(secrets, key.Name)
	case only == nil || only.UID == nil:
		return fmt.Errorf("deleting %s without its UID", key)
	case *only.UID != now.UID, only.ResourceVersion != nil && *only.ResourceVersion != now.ResourceVersion:
		return apierrors.NewConflict(secrets, key.Name, nil)
	}
	w.c.state.Delete(orders.Copies, key)
	return nil
}

func (w secretWriter) Patch(_ context.Context, obj client.Object, by client.Patch, _ ...client.PatchOption) error {
	key := client.ObjectKeyFromObject(obj)
	body, err := by.Data(obj)
	if err != nil {
		return err
	}
	var patch struct {
		Metadata struct {
			ResourceVersion     string
			Labels, Annotations map[string]*string
			OwnerReferences     []metav1.OwnerReference
		}
		Data map[string]*[]byte
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return err
	}
	now := orders.Get[*corev1.Secret](w.c.state, orders.Copies, key)
	switch {
	case now == nil:
		return apierrors.NewNotFound(secrets, key.Name)
	case patch.Metadata.ResourceVersion != now.ResourceVersion:
		return apierrors.NewConflict(secrets, key.Name, nil)
	}
	next := now.DeepCopy()
	next.Labels = merged(next.Labels, patch.Metadata.Labels)
	next.Annotations = merged(next.Annotations, patch.Metadata.Annotations)
	next.Data = merged(next.Data, patch.Data)
	if patch.Metadata.OwnerReferences != nil {
		next.OwnerReferences = patch.Metadata.OwnerReferences
	}
	w.c.state.Update(orders.Copies, next)
	*obj.(*corev1.Secret) = *next
	return nil
}

func merged[V any](into map[string]V, changes map[string]*V) map[string]V {
	next := maps.Clone(into)
	if next == nil {
		next = map[string]V{}
	}
	for key, value := range changes {
		if value == nil {
			delete(next, key)
		} else {
			next[key] = *value
		}
	}
	return next
}

func asForeign(err error, into **target.ForeignError) bool { return errors.As(err, into) }

// years is when tokens expire: after every search.
var years = time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)

// tokenNumbered returns one of the account's tokens.
func tokenNumbered(n int) string {
	if ordersTokens[n] == "" {
		ordersTokens[n] = ocmtest.TokenOf(theAccount.Namespace, theAccount.Name, years)
	}
	return ordersTokens[n]
}

var ordersTokens [4]string

func addAccount(s *orders.State, key types.NamespacedName, namespaces string) {
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		Labels:      map[string]string{contract.LabelSyncToProfile: "true"},
		Annotations: map[string]string{contract.AnnotationSyncToNamespaces: namespaces},
	}}
	s.Create(orders.Accounts, account)
}

// issue stores a token in the account's Secret.
func issue(s *orders.State, n int) {
	account := orders.Get[*authv1beta1.ManagedServiceAccount](s, orders.Accounts, theAccount)
	secret := ocmtest.TokenSecret(account, tokenNumbered(n), ocmtest.CA())
	if now := orders.Get[*corev1.Secret](s, orders.Copies, theAccount); now != nil {
		secret.UID, secret.CreationTimestamp = now.UID, now.CreationTimestamp
		s.Update(orders.Copies, secret)
	} else {
		s.Create(orders.Copies, secret)
	}
	p := extra(s)
	p.tokens = append(slices.Clip(p.tokens), tokenNumbered(n))
}

// writeReport says in the account's status that there is a token.
func writeReport(s *orders.State, n int) {
	orders.Edit(s, orders.Accounts, theAccount, func(a *authv1beta1.ManagedServiceAccount) {
		a.Status.TokenSecretRef = &authv1beta1.SecretRef{
			Name: theAccount.Name, LastRefreshTimestamp: metav1.NewTime(years.AddDate(-20, 0, n)),
		}
	})
}

func accountScenarios() []orders.Scenario {
	began := func(s *orders.State) {
		orders.Fleet(s, "c1")
		s.AddNamespace("n2")
		s.Bind("n2", "s1")
		addAccount(s, theAccount, "n1,n2")
		issue(s, 0)
		writeReport(s, 0)
		s.Publish("n1", "c1")
	}
	both := []types.NamespacedName{{Namespace: "n1", Name: "c1"}, {Namespace: "n2", Name: "c1"}}
	account := func(what string, change func(*authv1beta1.ManagedServiceAccount)) orders.Change {
		return orders.Changes(orders.Accounts, theAccount.Namespace, theAccount.Name, what, change)
	}
	exists := orders.Exists(orders.Accounts, theAccount.Namespace, theAccount.Name)
	return []orders.Scenario{
		{
			Name: "rotating", Pairs: both[:1], Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Begin: began,
			Changes: []orders.Change{
				{Name: "issue another token", If: exists, Do: func(s *orders.State) { issue(s, 1) }},
				{Name: "report another token", If: exists, Do: func(s *orders.State) { writeReport(s, 1) }},
				orders.Deletes(orders.Copies, theAccount.Namespace, theAccount.Name),
				account("withdraw the token of", func(a *authv1beta1.ManagedServiceAccount) { a.Status.TokenSecretRef = nil }),
				orders.Deletes(orders.Bindings, "n1", "s1"),
			},
		},
		{
			Name: "naming", Pairs: both, Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Begin: began,
			Changes: []orders.Change{
				account("name only n2 in", func(a *authv1beta1.ManagedServiceAccount) {
					a.Annotations = map[string]string{contract.AnnotationSyncToNamespaces: "n2"}
				}),
				account("unlabel", func(a *authv1beta1.ManagedServiceAccount) { a.Labels = nil }),
				account("begin to delete", orders.Terminating[*authv1beta1.ManagedServiceAccount]),
				orders.Deletes(orders.Accounts, theAccount.Namespace, theAccount.Name),
				orders.Deletes(orders.Bindings, "n2", "s1"),
			},
		},
		{
			Name: "entitling", Pairs: both[:1], Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Begin: began,
			Changes: []orders.Change{
				orders.Deletes(orders.Profiles, "n1", "c1"),
				orders.Deletes(orders.Bindings, "n1", "s1"),
				{
					Name: "bind s1 to n1", If: orders.Absent(orders.Bindings, "n1", "s1"),
					Do: func(s *orders.State) { s.Bind("n1", "s1") },
				},
				orders.Changes(orders.Clusters, "", "c1", "reject", func(c *clusterv1.ManagedCluster) {
					c.Spec.HubAcceptsClient = false
				}),
				{Name: "plant a Secret", If: orders.Absent(orders.Copies, "n1", target.Name(theAccount)), Do: func(s *orders.State) {
					s.Create(orders.Copies, &corev1.Secret{
						ObjectMeta: metav1.ObjectMeta{Namespace: "n1", Name: target.Name(theAccount)},
					})
				}},
			},
		},
		{
			Name: "moving with its account", Pairs: both, Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1,
			Begin: func(s *orders.State) {
				began(s)
				s.AddSet("s2", clusterv1beta2.ExclusiveClusterSetLabel)
				s.Bind("n2", "s2")
				s.Delete(orders.Bindings, types.NamespacedName{Namespace: "n2", Name: "s1"})
			},
			Changes: []orders.Change{
				orders.Changes(orders.Clusters, "", "c1", "move to s2", func(c *clusterv1.ManagedCluster) {
					c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "s2"}
				}),
				orders.Deletes(orders.Bindings, "n2", "s2"),
				{
					Name: "bind s2 to n1", If: orders.Absent(orders.Bindings, "n1", "s2"),
					Do: func(s *orders.State) { s.Bind("n1", "s2") },
				},
				{Name: "issue another token", If: exists, Do: func(s *orders.State) { issue(s, 1) }},
			},
		},
		colliding(began, both), doubting(began, both), losingAccounts(began, both), losingInSteps(began, both),
		restoring(began, both), boundFirst(began, both), unboundFirst(began, both), refusing(began, both),
		withAccount(orders.Slicing()), installing(),
		{
			Name: "choosing with its account", Pairs: both[:1], Budget: 3, Tick: 2 * time.Second, Ticks: 1, Crashes: 1,
			Begin: func(s *orders.State) {
				began(s)
				s.AddPlacement("n1", "p1")
				s.Place("n1", "p1", "c1")
			},
			Changes: []orders.Change{
				{Name: "choose none", Do: func(s *orders.State) { s.Place("n1", "p1") }},
				{Name: "choose c1", Do: func(s *orders.State) { s.Place("n1", "p1", "c1") }},
				{Name: "issue another token", If: exists, Do: func(s *orders.State) { issue(s, 1); writeReport(s, 1) }},
			},
		},
	}
}

// colliding: another account has copies of the same name.
func colliding(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	rival := func(what string, change func(*authv1beta1.ManagedServiceAccount)) orders.Change {
		return orders.Changes(orders.Accounts, theRival.Namespace, theRival.Name, what, change)
	}
	return orders.Scenario{
		Name: "colliding", Pairs: both[:1], Budget: 2, Tick: 11 * time.Second, Ticks: 0, Crashes: 1,
		Begin: func(s *orders.State) {
			began(s)
			s.AddCluster("c1-my", "s1")
			s.AddAddon("c1-my")
			addAccount(s, theRival, "n1")
		},
		Changes: []orders.Change{
			rival("begin to delete", orders.Terminating[*authv1beta1.ManagedServiceAccount]),
			rival("unlabel", func(a *authv1beta1.ManagedServiceAccount) { a.Labels = nil }),
			{Name: "plant the rival's copy", If: orders.Absent(orders.Copies, "n1", target.Name(theRival)),
				Do: func(s *orders.State) {
					secret := target.DesiredCopy(target.Want{Account: theRival, Namespace: "n1"})
					secret.OwnerReferences = nil
					s.Create(orders.Copies, secret)
				}},
			orders.Deletes(orders.Copies, "n1", target.Name(theRival)),
		},
	}
}

// doubting: the CRD of sets was recreated, and the set may be about to be restored.
func doubting(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	late := func(s *orders.State) {
		orders.Loses(rules.SetCRD, orders.Sets).Do(s)
		orders.Recreates(rules.SetCRD).Do(s)
	}
	return orders.Scenario{
		Name: "doubting", Pairs: both[:1], Budget: 2, Tick: 11 * time.Second, Ticks: 0, Crashes: 1, Late: late,
		Begin: func(s *orders.State) {
			began(s)
			s.AddDefinition(rules.SetCRD)
			copied(s, both[0])
		},
		Changes: []orders.Change{
			{Name: "issue another token", Do: func(s *orders.State) { issue(s, 1); writeReport(s, 1) }},
			{
				Name: "restore s1", If: orders.Absent(orders.Sets, "", "s1"),
				Do: func(s *orders.State) { s.AddSet("s1", clusterv1beta2.ExclusiveClusterSetLabel) },
			},
		},
	}
}

// copied makes a copy for a pair, with the rights to it.
func copied(s *orders.State, pair types.NamespacedName) {
	profile := orders.Get[*inventoryv1alpha1.ClusterProfile](s, orders.Profiles, pair)
	s.Create(orders.Copies, target.DesiredCopy(target.Want{
		Account: theAccount, Namespace: pair.Namespace, Owner: target.Owner{UID: profile.UID, Name: profile.Name},
		Token: bearer.Token{Token: []byte(tokenNumbered(0)), CA: []byte(ocmtest.CA()), Expires: years},
	}))
	p := extra(s)
	p.bindings[grants.Target(pair.Namespace)], p.bindings[grants.Source(theAccount.Namespace)] = true, true
}

// copiedWithCRD begins a story with a copied token, and with the CRD of accounts.
func copiedWithCRD(began func(*orders.State), pair types.NamespacedName) func(*orders.State) {
	return func(s *orders.State) {
		began(s)
		s.AddDefinition(source.AccountCRD)
		copied(s, pair)
	}
}

// losingAccounts: the CRD of accounts is deleted and recreated, and the account is restored without its status.
func losingAccounts(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	return orders.Scenario{
		Name: "losing accounts", Pairs: both[:1], Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 0,
		Begin: copiedWithCRD(began, both[0]),
		Changes: []orders.Change{
			orders.Loses(source.AccountCRD, orders.Accounts),
			orders.Recreates(source.AccountCRD),
			{
				Name: "restore the account", If: func(s *orders.State) bool {
					return len(s.Keys(orders.Accounts)) == 0 && orders.Get[client.Object](s, orders.Definitions,
						types.NamespacedName{Name: source.AccountCRD}).GetDeletionTimestamp() == nil
				}, Do: func(s *orders.State) { addAccount(s, theAccount, "n1,n2") },
			},
			orders.Changes(orders.Accounts, theAccount.Namespace, theAccount.Name, "report the token of",
				func(a *authv1beta1.ManagedServiceAccount) {
					a.Status.TokenSecretRef = &authv1beta1.SecretRef{
						Name: theAccount.Name, LastRefreshTimestamp: metav1.NewTime(years.AddDate(-20, 0, 1)),
					}
				}),
		},
	}
}

// losingInSteps: finalizers hold the account while its CRD is deleted, and its status is restored last.
func losingInSteps(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	is := func(going, there bool) func(*orders.State) bool {
		return func(s *orders.State) bool {
			crd := orders.Get[client.Object](s, orders.Definitions, types.NamespacedName{Name: source.AccountCRD})
			return (crd.GetDeletionTimestamp() != nil) == going && (len(s.Keys(orders.Accounts)) > 0) == there
		}
	}
	return orders.Scenario{
		Name: "losing accounts in steps", Pairs: both[:1], Budget: 5, Tick: 11 * time.Second, Ticks: 0, Crashes: 0,
		Begin: copiedWithCRD(began, both[0]),
		Changes: []orders.Change{
			{Name: "begin to delete accounts with their CRD", If: is(false, true), Do: func(s *orders.State) {
				orders.Edit(s, orders.Definitions, types.NamespacedName{Name: source.AccountCRD},
					orders.Terminating[*metav1.PartialObjectMetadata])
				orders.Edit(s, orders.Accounts, theAccount, orders.Terminating[*authv1beta1.ManagedServiceAccount])
			}},
			{Name: "let the account go", If: is(true, true), Do: func(s *orders.State) {
				s.Delete(orders.Accounts, theAccount)
			}},
			{Name: "recreate the CRD", If: is(true, false), Do: orders.Recreates(source.AccountCRD).Do},
			{Name: "restore the account", If: is(false, false), Do: func(s *orders.State) { addAccount(s, theAccount, "n1,n2") }},
		},
	}
}

// boundFirst: n1 binds a second set before the cluster moves to it.
func boundFirst(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	return orders.Scenario{
		Name: "bound before a move", Pairs: both[:1], Budget: 2, Tick: 11 * time.Second, Ticks: 0, Crashes: 0,
		Begin: func(s *orders.State) {
			began(s)
			s.AddSet("s2", clusterv1beta2.ExclusiveClusterSetLabel)
			copied(s, both[0])
		},
		Changes: []orders.Change{
			{
				Name: "bind s2 to n1", If: orders.Absent(orders.Bindings, "n1", "s2"),
				Do: func(s *orders.State) { s.Bind("n1", "s2") },
			},
			{Name: "move to s2", If: orders.Exists(orders.Bindings, "n1", "s2"), Do: moveTo("s2")},
		},
	}
}

// unboundFirst: s2 is unbound from n1 before the cluster moves there. A copy is left in n1, with an older token.
func unboundFirst(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	return orders.Scenario{
		Name: "unbound before a move", Pairs: both[:1], Budget: 3, Tick: 11 * time.Second, Ticks: 0, Crashes: 0,
		Begin: func(s *orders.State) {
			began(s)
			s.AddSet("s2", clusterv1beta2.ExclusiveClusterSetLabel)
			s.Bind("n1", "s2")
			s.Delete(orders.Bindings, types.NamespacedName{Namespace: "n1", Name: "s1"})
			copied(s, both[0])
			issue(s, 1)
			writeReport(s, 1)
		},
		Changes: []orders.Change{
			orders.Deletes(orders.Copies, "n1", target.Name(theAccount)),
			orders.Deletes(orders.Bindings, "n1", "s2"),
			{Name: "move to s2", If: orders.Absent(orders.Bindings, "n1", "s2"), Do: moveTo("s2")},
		},
	}
}

func moveTo(set string) func(*orders.State) {
	return func(s *orders.State) {
		orders.Edit(s, orders.Clusters, types.NamespacedName{Name: theAccount.Namespace}, func(c *clusterv1.ManagedCluster) {
			c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: set}
		})
	}
}

// withAccount adds an account, and its copy, to a scenario of one cluster.
func withAccount(scenario orders.Scenario) orders.Scenario {
	scenario.Name, scenario.Pairs, scenario.Crashes = scenario.Name+" with its account", scenario.Pairs[:1], 0
	begin := scenario.Begin
	scenario.Begin = func(s *orders.State) {
		begin(s)
		addAccount(s, theAccount, "n1")
		issue(s, 0)
		writeReport(s, 0)
		copied(s, scenario.Pairs[0])
	}
	return scenario
}

// installing: the addon is removed for a moment.
func installing() orders.Scenario {
	scenario := withAccount(orders.Installing())
	// While no slice names the cluster, a copy stays for ten seconds only.
	scenario.Changes = slices.DeleteFunc(scenario.Changes, func(change orders.Change) bool {
		return change.Name == "slice of no cluster" || change.Name == "install nowhere"
	})
	return scenario
}

// refusing: the token cannot be copied any more.
func refusing(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	return orders.Scenario{
		Name: "refusing", Pairs: both[:1], Budget: 1, Tick: 11 * time.Second, Ticks: 1, Crashes: 0,
		Begin: func(s *orders.State) {
			began(s)
			copied(s, both[0])
		},
		Changes: []orders.Change{
			orders.Deletes(orders.Copies, theAccount.Namespace, theAccount.Name),
			orders.Changes(orders.Accounts, theAccount.Namespace, theAccount.Name, "withdraw the token of",
				func(a *authv1beta1.ManagedServiceAccount) { a.Status.TokenSecretRef = nil }),
		},
	}
}

// restoring: the CRD of accounts was recreated, and the account is there again, without its status.
func restoring(began func(*orders.State), both []types.NamespacedName) orders.Scenario {
	return orders.Scenario{
		Name: "restoring an account", Pairs: both[:1], Budget: 1, Tick: 11 * time.Second, Ticks: 0, Crashes: 0,
		Begin: copiedWithCRD(began, both[0]),
		Changes: []orders.Change{
			{Name: "replace the CRD and the account", Do: func(s *orders.State) {
				orders.Loses(source.AccountCRD, orders.Accounts).Do(s)
				orders.Recreates(source.AccountCRD).Do(s)
				addAccount(s, theAccount, "n1,n2")
			}},
		},
	}
}
