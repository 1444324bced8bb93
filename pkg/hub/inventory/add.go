package inventory

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// ControllerName is the name of the controller that maintains the profiles, used alike in logs,
// metrics, field managers and events.
const ControllerName = profiles.FieldOwner

const (
	// everyDelay makes simultaneous changes, such as those of several CRDs, cause one
	// reconciliation of each pair.
	everyDelay = 100 * time.Millisecond

	// askAgainEvery is how often the pairs that wait for the install strategy are reconciled at
	// most, while the slices of its Placements change one by one.
	askAgainEvery = time.Second

	// establishTime is how old the CRD of ClusterProfiles must be for it to count as not
	// served: a CRD is served a moment after its creation.
	establishTime = 30 * time.Second
)

// Options configure the inventory.
type Options struct {
	// Rule decides what is published where. Required.
	Rule *selection.Rule

	// Guard decides whether profiles may be written now. It reads caches only. After an error
	// nothing is written, and it is called again. Required.
	Guard func(ctx context.Context) (profiles.Verdict, error)

	// GuardObjects are the kinds on which the guard's verdict depends, except for their
	// status: after a change every pair is reconciled. The manager's cache must be
	// restricted to the objects that matter.
	GuardObjects []client.Object

	// GuardChanges, if not nil, has changed called when the guard's verdict may have
	// changed although none of GuardObjects did.
	GuardChanges func(changed func())

	// LabelAllow are patterns (kube.IsPattern) of the ManagedCluster label keys
	// that are copied to profiles. Keys with a meaning for this addon are never
	// copied.
	LabelAllow []string

	// WriteEvery is how often a profile is written once it was written kube.WritesAtOnce
	// times in a row. Health, access providers and removal do not wait. Zero means that
	// nothing does.
	WriteEvery time.Duration

	// Access says how clusters are reached. If nil, this addon does not write access
	// providers.
	Access Access

	// References are removed before profiles are. If nil, nothing refers to profiles.
	References References

	// Workers is how many pairs are processed at a time, and WorkersPerNamespace how many
	// of them in one namespace; 0 means a default.
	Workers             int
	WorkersPerNamespace int

	// Events creates the events. Required.
	Events *notices.Controller

	// Metrics count the states of pairs and claims.
	Metrics *metrics.Metrics

	// Clock is the time.
	Clock clock.PassiveClock
}

// Access says how clusters are reached.
type Access interface {
	// Of returns what the access providers of a cluster's profiles must be. It reads
	// memory only.
	Of(cluster string) access.Decision

	// Subscribe has changed called whenever Of may return something else for a cluster, or,
	// with an empty name, for any cluster.
	Subscribe(changed func(cluster string))

	// WaitForSync returns when Of knows what can be known after a start, so that a profile
	// is created with its access providers.
	WaitForSync(ctx context.Context) error
}

// References are the objects that refer to profiles, to those that may be referred to
// (selection.Rule.AllowReferences).
type References interface {
	// Refer returns whether something refers to a pair's profile, which may be gone.
	Refer(ctx context.Context, pair types.NamespacedName) selection.Answer

	// Subscribe has enqueue called with each pair that must be reconciled.
	Subscribe(enqueue func(pair types.NamespacedName))
}

// inventory holds the controllers and their shared state.
type inventory struct {
	mgr    manager.Manager
	reader client.Reader // caches
	opts   Options
	pairs  *Reconciler
	routes selection.Routes
	ctx    context.Context // for reads from caches, which do not block

	// accessTrigger enqueues the pairs of clusters whose access has changed.
	accessTrigger watch.Trigger

	// referenceTrigger enqueues pairs whose profiles are no longer referred to, or are
	// referred to for no known reason.
	referenceTrigger watch.Trigger

	// everyTrigger enqueues all pairs when the guard's verdict has changed, or a kind is
	// served again or no longer, and those that wait for the install strategy when that may
	// have changed (askAgain). Simultaneous changes cause one reconciliation of each pair.
	everyTrigger watch.Trigger

	discovery *watch.Discovery

	profileAPIError string // the last one, which was logged

	followsClusters bool // whether rejected claims are counted and changes of member ids followed
	followsProfiles bool // whether changes of the ids that profiles have are

	// started is true once the pairs are reconciled, by the controller. Without profiles that
	// serves only to tell others what an event concerns.
	started      atomic.Bool
	controller   controller.Controller
	withProfiles bool
}

// Add registers the controllers and returns the source of the condition ProfilesSynced. The
// controller that maintains the profiles starts when the hub serves all APIs from which they
// are computed, and writes once it serves ClusterProfiles, which may be long after the manager
// has started.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (conditions.Source, error) {
	pairs := newReconciler(mgr.GetClient(), opts)
	i := &inventory{
		mgr:    mgr,
		reader: mgr.GetCache(),
		opts:   opts,
		pairs:  pairs,
		routes: opts.Rule.Routes(pairs.outcomes),
		ctx:    ctx,

		everyTrigger: watch.Trigger{Delay: everyDelay},
	}
	pairs.freed = i.enqueueClaimants
	if opts.Access != nil {
		i.followAccess(ctx)
	}
	if opts.References != nil {
		opts.References.Subscribe(i.referenceTrigger.Enqueue)
	}
	if opts.GuardChanges != nil {
		opts.GuardChanges(func() { i.enqueueEverything(ctx) })
	}
	err := i.addStart()
	if err != nil {
		return nil, fmt.Errorf("adding the start of %s: %w", ControllerName, err)
	}
	pairs.outcomes.ScopeChanged, err = opts.Events.Register(
		report.Reports(opts.Rule, pairs.outcomes, opts.Clock, opts.WriteEvery))
	if err != nil {
		return nil, fmt.Errorf("adding the events of %s: %w", ControllerName, err)
	}
	if err := i.followInstall(); err != nil {
		return nil, fmt.Errorf("following the install strategy: %w", err)
	}
	log.FromContext(ctx).V(1).Info("Added the inventory controllers", "labelAllow", opts.LabelAllow)
	return statusSource{i}, nil
}

// addStart makes the manager start the pairs' controller, and that follow ClusterProfiles.
func (i *inventory) addStart() error {
	var err error
	if i.discovery, err = watch.NewDiscovery(i.mgr.GetConfig(), i.mgr.GetHTTPClient()); err != nil {
		return err
	}
	start := &watch.LateStart{
		Name: ControllerName, Kinds: selection.Kinds(), Ready: i.knowsProfileAPI, Start: i.start,
	}
	if err := start.AddTo(i.mgr); err != nil {
		return err
	}
	profiles := &watch.LateStart{
		Name: ControllerName, Kinds: watch.Kinds{selection.ProfileCRD: selection.ProfileKind},
		Ready: i.started.Load, Start: i.startProfiles,
	}
	return profiles.AddTo(i.mgr)
}

// servesProfiles reports whether the hub serves ClusterProfiles now. known is false while it
// may be about to.
func (i *inventory) servesProfiles(ctx context.Context) (served, known bool, err error) {
	key := types.NamespacedName{Name: selection.ProfileCRD}
	crd, err := kube.Get(ctx, i.reader, key, kube.Partial(kube.CRDKind))
	if err != nil || crd == nil || crd.DeletionTimestamp != nil {
		return false, err == nil, err
	}
	served, err = i.discovery.Serves(ctx, selection.ProfileKind)
	return served, served || i.opts.Clock.Since(crd.CreationTimestamp.Time) > establishTime, err
}

// knowsProfileAPI is called every second while it returns false, so it logs an error once.
func (i *inventory) knowsProfileAPI() bool {
	_, known, err := i.servesProfiles(i.ctx)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if err != nil && text != i.profileAPIError {
		log.FromContext(i.ctx).Error(err, "Waiting until it is known whether the API server serves ClusterProfiles")
	}
	i.profileAPIError = text
	return known && err == nil
}

func (i *inventory) start(ctx context.Context) error {
	served, _, err := i.servesProfiles(ctx)
	if err != nil {
		return err
	}
	if i.withProfiles = served; served {
		err = i.prepareProfiles(ctx)
	} else {
		log.FromContext(ctx).Info("The hub does not serve ClusterProfiles, so only copies of tokens are withdrawn")
		err = i.opts.Rule.PrepareWithoutProfiles(ctx)
	}
	if err != nil {
		return err
	}
	clusters := kube.OnEvent(func(before, after *clusterv1.ManagedCluster, initial bool) {
		countRejected(i.opts.Metrics, before, after)
		i.followMembers(before, after, initial)
	})
	if err := i.followOnce(ctx, &i.followsClusters, &clusterv1.ManagedCluster{}, clusters); err != nil {
		return err
	}
	if err := watch.AddWhole(i.mgr, i.addPairs); err != nil {
		return fmt.Errorf("adding %s: %w", ControllerName, err)
	}
	i.opts.Rule.SubscribeDefinitions(i.enqueueAll)
	// All conditions have waited for this. Those of clusters without pairs wait for nothing
	// else.
	i.pairs.outcomes.StatusChanged("")
	i.started.Store(true)
	return nil
}

// prepareProfiles prepares the rule for ClusterProfiles, and makes claimants of a member id be
// reconciled when a profile gives it up. It may be called again.
func (i *inventory) prepareProfiles(ctx context.Context) error {
	if err := i.opts.Rule.Prepare(ctx); err != nil {
		return err
	}
	return i.followOnce(ctx, &i.followsProfiles, &inventoryv1alpha1.ClusterProfile{}, kube.OnEvent(i.followHeldIDs))
}

// followOnce adds a handler to the cache of a kind, unless that is done.
func (i *inventory) followOnce(
	ctx context.Context, done *bool, kind client.Object, handler toolscache.ResourceEventHandler,
) error {
	if *done {
		return nil
	}
	informer, err := i.mgr.GetCache().GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("caching %T: %w", kind, err)
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("following %T: %w", kind, err)
	}
	*done = true
	return nil
}

// startProfiles makes the pairs' controller follow ClusterProfiles, if it does not yet.
func (i *inventory) startProfiles(ctx context.Context) error {
	if i.withProfiles {
		return nil
	}
	if err := i.prepareProfiles(ctx); err != nil {
		return err
	}
	profiles := source.Kind(i.mgr.GetCache(), client.Object(&inventoryv1alpha1.ClusterProfile{}),
		handler.EventHandler(&handler.EnqueueRequestForObject{}), notResync)
	if err := i.controller.Watch(profiles); err != nil {
		return fmt.Errorf("watching ClusterProfiles: %w", err)
	}
	i.withProfiles = true
	i.enqueueEverything(ctx)
	return nil
}

func (i *inventory) addPairs(mgr manager.Manager) error {
	queue := fair.Options{ // no namespace delays another, and no removal waits for first writes
		Workers:  i.opts.Workers,
		PerGroup: i.opts.WorkersPerNamespace,
		Priority: func(req reconcile.Request) int { return i.pairs.priority(i.ctx, req) },
	}
	b := builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WithOptions(queue.Controller())
	if i.withProfiles {
		b = b.Watches(&inventoryv1alpha1.ClusterProfile{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(notResync))
	}
	b = i.routes.Watch(b, measured(i.opts.Metrics))
	for _, obj := range i.opts.GuardObjects {
		b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(i.routes.AllPairs), guardMatters())
	}
	if i.opts.Access != nil {
		b = b.WatchesRawSource(&i.accessTrigger)
	}
	var err error
	i.controller, err = b.WatchesRawSource(&i.referenceTrigger).WatchesRawSource(&i.everyTrigger).Build(i.pairs)
	return err
}

func (i *inventory) enqueueAll(ctx context.Context) {
	for _, request := range i.routes.AllPairs(ctx, nil) {
		i.everyTrigger.Enqueue(request.NamespacedName)
	}
}

// enqueueEverything enqueues every pair and every condition.
func (i *inventory) enqueueEverything(ctx context.Context) {
	i.pairs.outcomes.StatusChanged("")
	if !i.opts.Rule.Ready() {
		return // no pair has been reconciled yet
	}
	i.enqueueAll(ctx)
}

// followAccess enqueues the profiles of clusters whose access has changed. Other pairs need
// nothing: their profiles will be created with what is known then. Nor does a change before
// the rule is prepared: no pair has been reconciled yet.
func (i *inventory) followAccess(ctx context.Context) {
	i.accessTrigger.Ready = i.opts.Access.WaitForSync
	i.opts.Access.Subscribe(func(cluster string) {
		if !i.opts.Rule.Ready() {
			return
		}
		pairs, err := i.routes.PairsWithProfile(ctx, cluster)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot find the profiles of a cluster whose access has changed", "cluster", cluster)
		}
		for _, pair := range pairs {
			i.accessTrigger.Enqueue(pair)
		}
	})
}

// followInstall enqueues the pairs that wait for the install strategy when that changes, in one
// go for many slices: when an install Placement is emptied, there is a slice for every hundred
// clusters, and all of these wait.
func (i *inventory) followInstall() error {
	changed := make(chan struct{}, 1)
	i.opts.Rule.SubscribeInstall(func(namespace string) {
		i.pairs.outcomes.ScopeChanged(types.NamespacedName{Namespace: namespace})
		select {
		case changed <- struct{}{}:
		default: // there is one that was not seen yet
		}
	})
	return i.mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		atIntervals(ctx, changed, func() { i.opts.Rule.AskAgain(i.everyTrigger.Enqueue) })
		return nil
	}))
}

// atIntervals calls do after a change, together with those of everyDelay, and at most once in
// askAgainEvery, until the context ends. changed has room for one change.
func atIntervals(ctx context.Context, changed <-chan struct{}, do func()) {
	pause := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		pause(everyDelay)
		select {
		case <-changed:
		default:
		}
		do()
		pause(askAgainEvery - everyDelay)
	}
}

// notResync passes every change of a profile.
var notResync = predicate.ResourceVersionChangedPredicate{}

// guardMatters passes changes of a guard's object, except for the initial list: at the
// start every pair is reconciled anyway.
func guardMatters() builder.Predicates {
	return builder.WithPredicates(kube.AfterStart(), kube.OnChange(guardChanged))
}
