package credentials

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Names of the controllers, alike in logs, metrics and field managers.
const (
	// ControllerName keeps the copies.
	ControllerName = "hub.credentials"

	// RightsControllerName removes RoleBindings that are not needed any more.
	RightsControllerName = "hub.credentials-rights"

	// StatusControllerName keeps the condition CredentialsSynced.
	StatusControllerName = "hub.credentials-status"

	// StartControllerName reads the ManagedServiceAccounts once the hub serves
	// them.
	StartControllerName = "hub.credentials-start"
)

const (
	// workers is how many accounts are worked on at a time. Each waits for the API
	// server nearly all the time.
	workers = 16

	// Failed accounts are tried again after retryFirst, then at doubling intervals
	// up to retryMost: a quota that was raised sends no event.
	retryFirst = 20 * time.Millisecond
	retryMost  = time.Minute

	// servedRecheck is how soon a CRD that exists is asked for again until it is
	// served.
	servedRecheck = time.Second

	// statusDelay lets what happens to a cluster's accounts in one go become one
	// condition.
	statusDelay = 250 * time.Millisecond
)

const accountCRD = "managedserviceaccounts.authentication.open-cluster-management.io"

// Mode says what is done about copies.
type Mode string

const (
	// ModeEnabled keeps them.
	ModeEnabled Mode = "enabled"

	// ModeDraining removes them all, and then the manager's rights to them.
	ModeDraining Mode = "draining"

	// ModeDisabled does nothing and needs no rights, so it must not begin while there
	// are copies.
	ModeDisabled Mode = "disabled"
)

// Options configure the copying of credentials.
type Options struct {
	// Mode is what is done.
	Mode Mode

	// RequireTarget leaves an account alone that names no namespaces. Otherwise it
	// is copied wherever its cluster has a profile.
	RequireTarget bool

	// Selector knows what is published where. Required.
	Selector Selector

	// UpstreamSyncer tells whether upstream's syncer is on. Required.
	UpstreamSyncer UpstreamSyncer

	// ServiceAccount is the manager's own: what its RoleBindings give rights to.
	ServiceAccount types.NamespacedName

	// CheckEvery is about how often every token is read though nothing says that it
	// changed; zero means every four minutes.
	CheckEvery time.Duration

	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// UpstreamSyncer tells whether managed-serviceaccount's own syncer of tokens may be
// on, which writes Secrets of the same names.
type UpstreamSyncer interface {
	// Known reports whether On can be told yet.
	Known() bool
	On() bool

	// Subscribe has changed called whenever the answers may have changed.
	Subscribe(changed func())
}

// Credentials is the controllers and what they share.
type Credentials struct {
	mgr  manager.Manager
	opts Options

	accounts *accounts
	book     *book
	rights   *rights
	targets  *targets
	outcomes *outcomes

	asked, places, clusters *feed

	// added is for reads from caches, which do not wait.
	added context.Context

	// leading is closed when this process does the work; ctx is until when.
	leading chan struct{}
	ctx     context.Context
}

// Add registers the controllers. Accounts are read when the hub serves them, which
// may be long after the manager has started. In ModeDisabled it registers nothing,
// and fails if RoleBindings say that there are copies.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (*Credentials, error) {
	if opts.Mode == ModeDisabled {
		return &Credentials{opts: opts}, checkNoCopies(ctx, mgr.GetAPIReader())
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.CheckEvery == 0 {
		opts.CheckEvery = checkEvery
	}
	cfg := metadata.ConfigFor(mgr.GetConfig())
	metadataClient, err := metadata.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client of metadata: %w", err)
	}
	c := &Credentials{
		mgr:      mgr,
		opts:     opts,
		accounts: &accounts{cfg: mgr.GetConfig(), http: mgr.GetHTTPClient(), mapper: mgr.GetRESTMapper()},
		book:     newBook(),
		asked:    newFeed(0),
		places:   newFeed(0),
		clusters: newFeed(statusDelay),
		added:    ctx,
		leading:  make(chan struct{}),
	}
	c.outcomes = newOutcomes(func(cluster string) { c.clusters.add(types.NamespacedName{Name: cluster}, priorityKeep) })
	c.targets = newTargets(metadataClient, c.book, c.ask, func(namespace string) { c.places.add(target(namespace).key(), priorityKeep) })
	c.rights = newRights(mgr.GetCache(), mgr.GetAPIReader(), mgr.GetClient(), rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: opts.ServiceAccount.Namespace, Name: opts.ServiceAccount.Name,
	}, opts.Clock)
	opts.UpstreamSyncer.Subscribe(c.askEverything)
	// Filled before anything works: whether accounts are served must not be in doubt.
	if _, err := mgr.GetCache().GetInformer(ctx, crds(), cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	for _, add := range []func() error{c.addStart, c.addAccounts, c.addRights, c.addStatus} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	log.FromContext(ctx).V(1).Info("Added the copying of credentials", "mode", opts.Mode, "requireTarget", opts.RequireTarget)
	return c, mgr.Add(leader{c})
}

// CacheOptions says what the manager's cache needs to hold for this concern: of
// the RoleBindings only the manager's own.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&rbacv1.RoleBinding{}: {
			Label:     labels.SelectorFromSet(copyLabels()),
			Transform: cache.TransformStripManagedFields(),
		},
	}
}

// checkNoCopies fails while RoleBindings say that there are copies, which nobody
// would withdraw.
func checkNoCopies(ctx context.Context, live client.Reader) error {
	bindings := &metav1.PartialObjectMetadataList{}
	bindings.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBindingList"))
	if err := live.List(ctx, bindings, client.MatchingLabels(copyLabels())); err != nil {
		return fmt.Errorf("looking for RoleBindings that tell of copies: %w", err)
	}
	var namespaces []string
	for i := range bindings.Items {
		if bindings.Items[i].Name == contract.TokenTargetRole {
			namespaces = append(namespaces, bindings.Items[i].Namespace)
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	return fmt.Errorf("--credentials-mode=%s: RoleBinding %s says that copies of tokens may be in %s, and nobody would withdraw them; "+
		"set the mode to %s and wait until these RoleBindings are gone, or delete copies and RoleBindings yourself",
		ModeDisabled, contract.TokenTargetRole, kube.ListNames(sorted(namespaces), maxNames), ModeDraining)
}

// Look is to be called when the rule's answer for a pair may have changed, or its
// profile has come or gone. It returns at once.
func (c *Credentials) Look(pair types.NamespacedName) {
	if c.opts.Mode == ModeDisabled {
		return
	}
	accounts, err := c.accounts.list(c.added, client.InNamespace(pair.Name))
	if err != nil {
		return // the cache is being shut down
	}
	for i := range accounts {
		c.askAll(&accounts[i])
	}
	for _, account := range c.book.accountsOf(pair.Name) {
		c.ask(account)
	}
}

// ask has an account looked at.
func (c *Credentials) ask(account types.NamespacedName) {
	priority := priorityMake
	if len(c.book.namespacesOf(account)) > 0 {
		priority = priorityKeep
	}
	c.asked.add(account, priority)
}

// askAll has an account looked at, and those whose copies would have its copies'
// name.
func (c *Credentials) askAll(account *authv1beta1.ManagedServiceAccount) {
	key := client.ObjectKeyFromObject(account)
	c.ask(key)
	rivals, err := c.accounts.list(c.added, client.MatchingFields{IndexAccountByCopyName: copyName(key)})
	if err != nil {
		return
	}
	for i := range rivals {
		c.ask(client.ObjectKeyFromObject(&rivals[i]))
	}
}

// askEverything has every account looked at.
func (c *Credentials) askEverything() {
	accounts, err := c.accounts.list(c.added)
	if err != nil {
		return
	}
	for i := range accounts {
		c.ask(client.ObjectKeyFromObject(&accounts[i]))
	}
	for _, account := range c.book.all() {
		c.ask(account)
	}
}

// leader is what only the process that does the work runs.
type leader struct{ *Credentials }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (leader) NeedLeaderElection() bool { return true }

// Start runs the informers until the context ends.
func (l leader) Start(ctx context.Context) error {
	l.ctx = ctx
	l.targets.start(ctx)
	close(l.leading)
	// One that was looked at before could not be watched.
	l.reviewRights()
	<-ctx.Done()
	l.targets.wait()
	return nil
}

// addStart registers what reads the accounts once they are served.
func (c *Credentials) addStart() error {
	return builder.ControllerManagedBy(c.mgr).
		Named(StartControllerName).
		WatchesMetadata(crds(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.And(named(accountCRD), predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		}))).
		Complete(reconcile.Func(c.start))
}

// crds is the kind of which only metadata is read.
func crds() *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return crd
}

// start reads the accounts, once, when they are served.
func (c *Credentials) start(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if c.accounts.filled() != nil {
		return reconcile.Result{}, nil
	}
	select {
	case <-ctx.Done():
		return reconcile.Result{}, nil
	case <-c.leading:
	}
	kind := authv1beta1.GroupVersion.WithKind("ManagedServiceAccount")
	_, err := c.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return reconcile.Result{RequeueAfter: servedRecheck}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("asking for %s: %w", kind, err)
	}
	if err := c.accounts.start(c.ctx, c.askAll); err != nil { //nolint:contextcheck // it outlives this reconciliation
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("Following ManagedServiceAccounts")
	for _, account := range c.book.all() {
		c.ask(account)
	}
	if c.accounts.settled() {
		c.reviewRights()
	}
	return reconcile.Result{}, c.reviewConditions(ctx)
}

// review has a RoleBinding looked at.
func (c *Credentials) review(binding client.Object) {
	c.places.add(client.ObjectKeyFromObject(binding), priorityKeep)
}

// reviewRights has every RoleBinding looked at: from now on it is known which are
// needed.
func (c *Credentials) reviewRights() {
	bindings := &rbacv1.RoleBindingList{}
	if err := c.mgr.GetCache().List(c.added, bindings, uncopied); err != nil {
		return
	}
	for i := range bindings.Items {
		c.review(&bindings.Items[i])
	}
}

// reviewConditions has the condition of every cluster looked at: from now on it is
// known which have accounts.
func (c *Credentials) reviewConditions(ctx context.Context) error {
	addons := &addonv1beta1.ManagedClusterAddOnList{}
	if err := c.mgr.GetCache().List(ctx, addons, uncopied); err != nil {
		return fmt.Errorf("listing addons: %w", err)
	}
	for i := range addons.Items {
		c.clusters.add(types.NamespacedName{Name: addons.Items[i].Namespace}, priorityMake)
	}
	return nil
}

// settled tells whether it is known which RoleBindings are needed. Where the hub
// serves no accounts, none is for their sake.
func (c *Credentials) settled() bool {
	return c.opts.Mode == ModeDraining || c.accounts.settled() || c.accounts.filled() == nil && !c.declared()
}

// declared tells whether the hub has, or may have, the CRD of accounts.
func (c *Credentials) declared() bool {
	err := c.mgr.GetCache().Get(c.added, types.NamespacedName{Name: accountCRD}, crds(), uncopied)
	return !apierrors.IsNotFound(err)
}

// addAccounts registers the controller of the copies.
func (c *Credentials) addAccounts() error {
	return builder.ControllerManagedBy(c.mgr).
		Named(ControllerName).
		WithOptions(options()).
		WatchesRawSource(c.asked).
		Complete(c.reconciler())
}

func (c *Credentials) reconciler() *Reconciler {
	return &Reconciler{
		observer: observer{
			accounts:      c.accounts,
			book:          c.book,
			reader:        c.mgr.GetCache(),
			selector:      c.opts.Selector,
			syncer:        c.opts.UpstreamSyncer,
			draining:      c.opts.Mode == ModeDraining,
			requireTarget: c.opts.RequireTarget,
		},
		live:     c.mgr.GetAPIReader(),
		writer:   c.mgr.GetClient(),
		rights:   c.rights,
		targets:  c.targets,
		book:     c.book,
		sources:  newSources(c.opts.CheckEvery),
		outcomes: c.outcomes,
		clock:    c.opts.Clock,
		dropped:  func(p place) { c.places.add(p.key(), priorityKeep) },
		settled:  c.reviewRights,
	}
}

// addRights registers the controller of the RoleBindings.
func (c *Credentials) addRights() error {
	return builder.ControllerManagedBy(c.mgr).
		Named(RightsControllerName).
		WithOptions(options()).
		Watches(&rbacv1.RoleBinding{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				c.review(e.Object)
			},
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				c.review(e.ObjectNew)
			},
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				c.rights.vanished(e.Object)
				c.review(e.Object)
			},
		}, builder.WithPredicates(named(contract.TokenSourceRole, contract.TokenTargetRole))).
		WatchesRawSource(c.places).
		Complete(&RightsReconciler{
			reader:  c.mgr.GetCache(),
			rights:  c.rights,
			targets: c.targets,
			book:    c.book,
			settled: c.settled,
		})
}

// addStatus registers the controller of the condition.
func (c *Credentials) addStatus() error {
	return builder.ControllerManagedBy(c.mgr).
		Named(StatusControllerName).
		WithOptions(options()).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(clusterOfAddon), builder.WithPredicates(predicate.Funcs{UpdateFunc: conditionChanged})).
		WatchesRawSource(c.clusters).
		Complete(&StatusReconciler{
			reader:       c.mgr.GetCache(),
			writer:       c.mgr.GetClient(),
			clock:        c.opts.Clock,
			accounts:     c.accounts,
			outcomes:     c.outcomes,
			expectations: kube.NewExpectations(),
		})
}

func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
	}
}

// named passes objects of the given names.
func named(names ...string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		for _, name := range names {
			if obj.GetName() == name {
				return true
			}
		}
		return false
	})
}

// conditionChanged: somebody changed our condition on a ManagedClusterAddOn.
func conditionChanged(e event.UpdateEvent) bool {
	before, okBefore := e.ObjectOld.(*addonv1beta1.ManagedClusterAddOn)
	after, okAfter := e.ObjectNew.(*addonv1beta1.ManagedClusterAddOn)
	if !okBefore || !okAfter || before.UID != after.UID {
		return true
	}
	b := apimeta.FindStatusCondition(before.Status.Conditions, contract.ConditionCredentialsSynced)
	a := apimeta.FindStatusCondition(after.Status.Conditions, contract.ConditionCredentialsSynced)
	if b == nil || a == nil {
		return b != a
	}
	return b.Status != a.Status || b.Reason != a.Reason || b.Message != a.Message
}

// clusterOfAddon leads from an addon to its cluster.
func clusterOfAddon(_ context.Context, addon client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: addon.GetNamespace()}}}
}
