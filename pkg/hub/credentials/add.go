package credentials

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Names of the controllers, used alike in logs, metrics and field managers.
const (
	// ControllerName maintains the copies.
	ControllerName = "hub.credentials"

	// GrantsControllerName removes RoleBindings that are no longer needed.
	GrantsControllerName = "hub.credentials-rights"
)

// eventAction is what the controller refrained from.
const eventAction = "Copy"

// reportDelay lets a burst of changes in a namespace become one event, and what passes by
// itself, such as the time until a new account has its first token, become none.
const reportDelay = 10 * time.Second

// Mode says what to do with copies.
type Mode string

const (
	// ModeEnabled maintains them.
	ModeEnabled Mode = "enabled"

	// ModeDraining removes them all, and then the manager's rights to them.
	ModeDraining Mode = "draining"

	// ModeDisabled does nothing and needs no rights, so the manager must not start while
	// there are copies.
	ModeDisabled Mode = "disabled"
)

// Rule knows what is published where. A ClusterProfile proves nothing by itself, because
// users who may create one may give it any label and owner. The rule decides from caches.
type Rule interface {
	// Selected applies the rule to a pair: the namespace, and as its name the
	// cluster. withdrawing says that a No would take something away.
	Selected(ctx context.Context, pair types.NamespacedName, withdrawing bool) (selection.Result, error)

	// ConfirmYes is Selected for a first copy: a Yes also holds on the hub itself, past the caches.
	ConfirmYes(ctx context.Context, pair types.NamespacedName) (selection.Result, error)

	// Namespaces returns the namespaces that have a ClusterProfile with a cluster's name, or
	// selection.ErrProfilesUnserved.
	Namespaces(ctx context.Context, cluster string) ([]string, error)

	// Subscribe has changed called whenever the rule's answer for a pair may have
	// changed, or its profile was created or deleted. changed returns at once.
	Subscribe(changed func(pair types.NamespacedName))

	// SubscribeEarly has touched called for every pair that an event concerns, before the
	// pair is reconciled. touched returns at once.
	SubscribeEarly(touched func(pair types.NamespacedName))

	// SubscribeDefinitions has changed called when the answer for every pair may have
	// changed: the rule can be applied now, or a CRD that it depends on has changed. changed
	// returns at once.
	SubscribeDefinitions(changed func(context.Context))
}

// UpstreamSyncer finds out whether managed-serviceaccount's own syncer of tokens may be on,
// which writes Secrets of the same names.
type UpstreamSyncer interface {
	// Unknown says, as the end of a sentence about the syncer's ClusterRole, why On is not
	// known; it is empty if it is.
	Unknown() string
	On() bool

	// Subscribe has changed called whenever On or Unknown may have changed.
	Subscribe(changed func())
}

// Options configure the copying of credentials.
type Options struct {
	// Mode says what to do with copies.
	Mode Mode

	// RequireTarget skips an account that names no namespaces. Otherwise it is copied
	// wherever its cluster has a profile.
	RequireTarget bool

	// Rule knows what is published where. Required.
	Rule Rule

	// Definitions know whether missing accounts are missed. They must follow what the rule
	// reads, too, because accounts are restored together with that. Required.
	Definitions *watch.Definitions

	// UpstreamSyncer finds out whether upstream's syncer is on. Required.
	UpstreamSyncer UpstreamSyncer

	// ServiceAccount is the manager's own: the subject of its RoleBindings.
	ServiceAccount types.NamespacedName

	// WriteEvery is how often a copy is written once it was written kube.WritesAtOnce times in a
	// row. Withdrawals and repairs do not wait. Zero means that nothing does.
	WriteEvery time.Duration

	// Workers is how many accounts are processed at a time, and WorkersPerNamespace how
	// many of them of one cluster, and how many copies in one namespace; 0 means a default.
	Workers             int
	WorkersPerNamespace int

	// Events creates the events. Required.
	Events *notices.Controller

	// Metrics count the states of accounts.
	Metrics *metrics.Metrics

	// Clock is the time.
	Clock clock.PassiveClock

	checkEvery    time.Duration // zero means source.CheckEvery
	operationWait time.Duration // zero means operationWait
	reportDelay   time.Duration // zero means reportDelay
}

// Credentials holds the controllers and their shared state.
type Credentials struct {
	mgr  manager.Manager
	opts Options

	accounts   *source.Accounts
	tokens     *source.Tokens
	ledger     *target.Ledger
	copies     *target.Copies
	followers  *target.Followers
	failures   *failures
	operations *operations
	bindings   grants.Bindings
	grants     *grants.Grants
	outcomes   *report.Outcomes

	accountTrigger, grantTrigger watch.Trigger

	status       kube.Subscribers[string] // notified of clusters whose condition may have changed, or "" for all
	scopeChanged func(scope types.NamespacedName)

	// added is for reads from caches, which do not block.
	added context.Context
}

// Add registers the controllers. Its result is the source of the condition
// CredentialsSynced. Accounts are read once the hub serves them, which may be long after
// the manager has started. In ModeDisabled it registers nothing, and fails if RoleBindings
// indicate that there are copies.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (*Credentials, error) {
	if opts.Mode == ModeDisabled {
		return &Credentials{opts: opts}, checkNoCopies(ctx, mgr.GetAPIReader())
	}
	c, err := newCredentials(ctx, mgr, opts)
	if err != nil {
		return nil, err
	}
	// The cache of CRDs syncs before any controller runs, so that it is known whether the
	// hub has accounts at all.
	if _, err := mgr.GetCache().GetInformer(ctx, kube.Partial(kube.CRDKind), cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	for _, add := range []func() error{c.addStart, c.addAccounts, c.addGrants, c.addReport} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	opts.Rule.Subscribe(c.enqueuePair)
	opts.Rule.SubscribeEarly(c.enqueueUnselected)
	opts.Rule.SubscribeDefinitions(func(context.Context) { c.enqueueEverything() })
	opts.UpstreamSyncer.Subscribe(c.enqueueEverything)
	log.FromContext(ctx).V(1).Info("Added the credentials controllers",
		"mode", opts.Mode, "requireTarget", opts.RequireTarget)
	return c, mgr.Add(manager.RunnableFunc(c.stopFollowers))
}

func newCredentials(ctx context.Context, mgr manager.Manager, opts Options) (*Credentials, error) {
	watching, err := watch.NewWatchClient(mgr)
	if err != nil {
		return nil, err
	}
	bindings, err := grants.NewBindings(ctx, mgr)
	if err != nil {
		return nil, err
	}
	c := &Credentials{
		mgr:      mgr,
		opts:     opts,
		bindings: bindings,
		accounts: source.NewAccounts(mgr, target.Name),
		tokens:   source.NewTokens(mgr.GetAPIReader(), cmp.Or(opts.checkEvery, source.CheckEvery), opts.Clock),
		ledger:   target.NewLedger(),
		added:    ctx,
	}
	c.outcomes = report.NewOutcomes(c.status.Notify, c.enqueueEvents, opts.Metrics)
	c.followers = target.NewFollowers(ctx, watching, c.ledger, c.enqueueWithRivals, func(namespace string) {
		c.enqueueGrant(grants.Target(namespace))
	})
	c.failures = newFailures(opts.Clock)
	c.operations = newOperations(cmp.Or(opts.WorkersPerNamespace, fair.DefaultPerGroup),
		cmp.Or(opts.operationWait, operationWait), c.failures, c.enqueueAccount)
	owner := client.FieldOwner(ControllerName)
	c.copies = target.NewCopies(mgr.GetAPIReader(), mgr.GetClient(), c.ledger, opts.Clock, owner, opts.WriteEvery)
	c.grants = grants.New(bindings, mgr.GetAPIReader(), mgr.GetClient(), rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: opts.ServiceAccount.Namespace, Name: opts.ServiceAccount.Name,
	}, opts.Clock, owner)
	c.grants.AllReconciled = c.allReconciled
	c.grants.Copies = c.followers
	return c, nil
}

// checkNoCopies fails while RoleBindings indicate that there are copies, because nothing
// would withdraw these.
func checkNoCopies(ctx context.Context, live client.Reader) error {
	namespaces, err := grants.TargetNamespaces(ctx, live)
	if err != nil {
		return fmt.Errorf("listing RoleBindings for copies: %w", err)
	}
	if len(namespaces) == 0 {
		return nil
	}
	return fmt.Errorf("--credentials-mode=%s: RoleBinding %s says that copies of tokens may be in %s, "+
		"and the manager would not withdraw them; "+
		"set the mode to %s and wait until these RoleBindings are gone, or delete copies and RoleBindings yourself",
		ModeDisabled, contract.TokenTargetRole, kube.ListNames(namespaces, report.MaxNames), ModeDraining)
}

// stopFollowers stops the followers of target namespaces, which controllers have started, when the leader's
// context ends.
func (c *Credentials) stopFollowers(ctx context.Context) error {
	<-ctx.Done()
	c.followers.Stop()
	return nil
}

// addStart makes the manager read the accounts once they are served.
func (c *Credentials) addStart() error {
	late := &watch.LateStart{
		Name:  ControllerName,
		Kinds: watch.Kinds{source.AccountCRD: source.AccountKind},
		Start: c.start,
	}
	return late.AddTo(c.mgr)
}

// start reads the accounts, which enqueues them, and enqueues those of which there are only copies. An account
// that was reconciled before its CRD was followed may have been left unknown, so all are enqueued again.
func (c *Credentials) start(ctx context.Context) error {
	if !c.accounts.Synced() {
		if err := c.accounts.Start(ctx, c.enqueueWithRivals); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Following ManagedServiceAccounts")
	}
	if err := c.followDefinition(ctx); err != nil {
		return err
	}
	c.enqueueEverything()
	if c.accounts.AllReconciled() {
		c.enqueueGrants()
	}
	c.status.Notify("")
	return nil
}

// followDefinition follows the CRD of the accounts. When missing accounts begin or cease to
// count as missing, all accounts are enqueued.
func (c *Credentials) followDefinition(ctx context.Context) error {
	restored, err := c.observeRestored(ctx)
	if err != nil {
		return err
	}
	accounts := watch.Source{CRD: source.AccountCRD, Informer: c.accounts.Informer()}
	if err := c.opts.Definitions.Follow(ctx, c.mgr.GetCache(), restored, accounts); err != nil {
		return err
	}
	c.opts.Definitions.Subscribe(func(context.Context) {
		c.enqueueEverything()
		c.enqueueGrants()
	}, source.AccountCRD)
	return nil
}

// observeRestored reports whether there were copies before the CRD of the accounts was
// created.
func (c *Credentials) observeRestored(ctx context.Context) (bool, error) {
	crd, err := c.accountCRD(ctx)
	if err != nil || crd == nil {
		return false, err
	}
	bindings := &rbacv1.RoleBindingList{}
	if err := c.bindings[contract.TokenTargetRole].List(ctx, bindings, kube.Uncopied); err != nil {
		return false, fmt.Errorf("listing RoleBindings for copies: %w", err)
	}
	return slices.ContainsFunc(bindings.Items, func(binding rbacv1.RoleBinding) bool {
		return !crd.CreationTimestamp.Before(&binding.CreationTimestamp)
	}), nil
}

// allReconciled reports whether it is known which RoleBindings are needed. If the hub
// serves no accounts, none are. While accounts are being restored, missing accounts may
// need any.
func (c *Credentials) allReconciled() bool {
	switch {
	case c.opts.Mode == ModeDraining:
		return true
	case !c.mayHaveAccounts():
		return !c.accounts.Synced() || c.accounts.AllReconciled()
	default:
		state, err := c.opts.Definitions.State(c.added, c.mgr.GetCache(), source.AccountCRD)
		return err == nil && state == watch.Served && c.accounts.AllReconciled()
	}
}

// mayHaveAccounts reports whether the hub has, or may have, the CRD of accounts.
func (c *Credentials) mayHaveAccounts() bool {
	crd, err := c.accountCRD(c.added)
	return err != nil || crd != nil
}

// accountCRD returns the CRD of accounts as the cache has it, or nil.
func (c *Credentials) accountCRD(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	key := types.NamespacedName{Name: source.AccountCRD}
	return kube.Get(ctx, c.mgr.GetCache(), key, kube.Partial(kube.CRDKind))
}

// addAccounts registers the controller of the copies.
func (c *Credentials) addAccounts() error {
	reconciler := &Reconciler{Credentials: c}
	queue := c.queue()
	queue.Priority = reconciler.priority
	return builder.ControllerManagedBy(c.mgr).
		Named(ControllerName).
		WithOptions(queue.Controller()).
		WatchesRawSource(&c.accountTrigger).
		Complete(reconciler)
}

// queue returns the options of the queue: no namespace delays another.
func (c *Credentials) queue() fair.Options {
	return fair.Options{Workers: c.opts.Workers, PerGroup: c.opts.WorkersPerNamespace}
}

// addGrants registers the controller of the RoleBindings.
func (c *Credentials) addGrants() error {
	controller := builder.ControllerManagedBy(c.mgr).
		Named(GrantsControllerName).
		WithOptions(c.queue().Controller()).
		WatchesRawSource(&c.grantTrigger)
	enqueue := watch.HandlerFunc(func(_ context.Context, binding client.Object) {
		c.grantTrigger.Enqueue(client.ObjectKeyFromObject(binding))
	})
	vanished := predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		c.grants.Vanished(e.Object)
		return true
	}}
	for _, named := range c.bindings {
		all := ctrlsource.Kind[client.Object](named, &rbacv1.RoleBinding{}, enqueue, vanished)
		controller = controller.WatchesRawSource(all)
	}
	return controller.Complete(c.grants)
}

// addReport adds the events that say, in consumers' namespaces, which tokens are not copied there
// and why.
func (c *Credentials) addReport() (err error) {
	c.scopeChanged, err = c.opts.Events.Register(notices.Reports{
		Controller: ControllerName, Action: eventAction, Delay: cmp.Or(c.opts.reportDelay, reportDelay),
		Current: func(_ context.Context, scope types.NamespacedName) ([]notices.Notice, error) {
			return notices.Desired(c.outcomes.In(scope.Namespace)), nil
		},
	})
	return err
}

// enqueueEvents has the events of a namespace created that are due.
func (c *Credentials) enqueueEvents(namespace string) {
	c.scopeChanged(types.NamespacedName{Namespace: namespace})
}
