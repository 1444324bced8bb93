package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
)

// Names of the controllers, alike in logs, metrics, field managers and events.
const (
	// ControllerName keeps the profiles.
	ControllerName = "hub.inventory"

	// ReportControllerName creates the events that say what is withheld.
	ReportControllerName = "hub.inventory-report"

	// DefinitionsControllerName follows the CRDs of what profiles are computed from.
	DefinitionsControllerName = "hub.inventory-definitions"

	// StartControllerName starts ControllerName once the hub serves what it needs.
	StartControllerName = "hub.inventory-start"
)

const (
	// everyDelay lets changes that come at the same time, such as those of several CRDs,
	// have each pair looked at once.
	everyDelay = 100 * time.Millisecond

	// Failed events are tried again after retryFirst, then at doubling intervals up
	// to retryMost: a quota that was raised sends no event.
	retryFirst = 20 * time.Millisecond
	retryMost  = time.Minute
)

// Options configure the inventory.
type Options struct {
	// Rule says what is published where. Required.
	Rule *selection.Rule

	// Guard says whether profiles may be written. Required.
	Guard Guard

	// GuardObjects are of the kinds that the guard's verdict depends on, except for
	// their status: after a change every pair is looked at again. The manager's cache
	// must be restricted to the objects that matter.
	GuardObjects []client.Object

	// GuardChanges, if not nil, has changed called when the guard's verdict may have
	// changed although none of GuardObjects did.
	GuardChanges func(changed func())

	// LabelAllow are patterns, as of path.Match, of the ManagedCluster label keys
	// that are copied to profiles. Keys with a meaning for this addon are never
	// copied.
	LabelAllow []string

	// Access says how clusters are reached. Nil means that access providers are not
	// this addon's to write.
	Access Access

	// References are told which profiles may be referred to. Nil means that nobody refers
	// to any.
	References References

	// Workers is how many pairs are worked on at a time, and WorkersPerNamespace how
	// many of them in one namespace; 0 means a default.
	Workers             int
	WorkersPerNamespace int

	// Metrics count what becomes of pairs and claims; nil means that nobody counts.
	Metrics *metrics.Metrics

	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// Access says how clusters are reached.
type Access interface {
	// Of returns what the access providers of a cluster's profiles must be. It reads
	// memory only.
	Of(cluster string) access.Decision

	// Subscribe makes changed be called whenever Of may return something else for a
	// cluster: for any cluster when the name is empty.
	Subscribe(changed func(cluster string))

	// WaitForSync returns when Of knows what can be known after a start, so that a
	// profile is born with its access providers.
	WaitForSync(ctx context.Context) error
}

// References are what refers to profiles, and must not refer to any that is not whole, or
// not any more.
type References interface {
	// Admit says that a pair's profile is whole.
	Admit(ctx context.Context, pair types.NamespacedName)

	// Withdraw says that a pair's profile is about to go, or has gone. It reports whether
	// nothing refers to it any more; otherwise subscribers are told when that is so.
	Withdraw(ctx context.Context, pair types.NamespacedName) (done bool)

	// Hold says that nothing can be said of a pair's profile now.
	Hold(pair types.NamespacedName)

	// Forget says that a pair's profile is not there, or on its way out: references stay,
	// unless it was withdrawn, and none is added.
	Forget(pair types.NamespacedName)

	// Keep says that a pair's profile stays after all, if it was withdrawn.
	Keep(pair types.NamespacedName)

	// Refers reports whether something refers to a pair's profile, which may be gone.
	Refers(ctx context.Context, pair types.NamespacedName) bool

	// Subscribe makes look be called with a pair that must be looked at.
	Subscribe(look func(pair types.NamespacedName))
}

// Guard says whether this addon may write profiles now.
type Guard interface {
	// Verdict reads caches only. On an error nothing is written, and it is called
	// again.
	Verdict(ctx context.Context) (GuardVerdict, error)
}

// GuardVerdict is a guard's answer. If it does not allow writing, Reason and
// Message become those of the condition ProfilesSynced. Without a reason the
// condition stays: it cannot be told yet whether writing is allowed.
type GuardVerdict struct {
	Allowed bool
	Reason  string
	Message string

	// Access allows access providers to be written to profiles that are there although
	// nothing else may be written: whoever writes the rest leaves these alone.
	Access bool
}

// GuardFunc is a function that is a Guard.
type GuardFunc func(ctx context.Context) (GuardVerdict, error)

// Verdict calls the function.
func (f GuardFunc) Verdict(ctx context.Context) (GuardVerdict, error) { return f(ctx) }

// inventory is the controllers and what they share.
type inventory struct {
	mgr    manager.Manager
	opts   Options
	pairs  *Reconciler
	status *statusSource
	routes selection.Routes
	ctx    context.Context // for reads from caches, which do not wait

	// accessTrigger feeds the pairs of clusters whose access has changed.
	accessTrigger kube.Trigger

	// referenceTrigger feeds the pairs to whose profiles nothing refers any more, and those
	// to which something does for no known reason.
	referenceTrigger kube.Trigger

	// everyTrigger feeds all pairs when the guard has changed its mind, or a kind is
	// served again or is not. What changes together has each pair looked at once.
	everyTrigger kube.Trigger

	counting bool // whether the metrics count rejected claims
}

// Add registers the controllers and returns what knows the condition ProfilesSynced.
// The one that keeps the profiles starts when the hub serves ClusterProfiles and all
// they are computed from, which may be long after the manager has started.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (conditions.Source, error) {
	if opts.Rule == nil || opts.Guard == nil {
		return nil, errors.New("inventory: a rule and a guard are required")
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	pairs := newReconciler(mgr.GetClient(), opts)
	i := &inventory{
		mgr:    mgr,
		opts:   opts,
		pairs:  pairs,
		routes: opts.Rule.Routes(pairs.outcomes),
		ctx:    ctx,

		everyTrigger: kube.Trigger{Delay: everyDelay},
	}
	i.status = newStatusSource(mgr.GetCache(), opts, i.routes, pairs.outcomes)
	if opts.Access != nil {
		i.followAccess(ctx)
	}
	if opts.References != nil {
		opts.References.Subscribe(i.referenceTrigger.Enqueue)
	}
	if opts.GuardChanges != nil {
		opts.GuardChanges(func() { i.enqueueEverything(ctx) })
	}
	if err := i.addStart(); err != nil {
		return nil, fmt.Errorf("adding %s: %w", StartControllerName, err)
	}
	if err := i.addReport(); err != nil {
		return nil, fmt.Errorf("adding %s: %w", ReportControllerName, err)
	}
	log.FromContext(ctx).V(1).Info("Added the inventory", "labelAllow", opts.LabelAllow)
	return i.status, nil
}

// addStart registers what starts the pairs' controller.
func (i *inventory) addStart() error {
	start := &kube.LateStart{
		Name: StartControllerName, CRDs: selection.CRDs(), Kinds: selection.Kinds(), Start: i.start,
	}
	return start.AddTo(i.mgr)
}

// start starts the pairs' controller.
func (i *inventory) start(ctx context.Context) error {
	if err := i.opts.Rule.Prepare(ctx); err != nil {
		return err
	}
	if !i.counting {
		if err := countRejected(ctx, i.mgr.GetCache(), i.opts.Metrics); err != nil {
			return err
		}
		i.counting = true
	}
	if err := i.addPairs(); err != nil {
		return fmt.Errorf("adding %s: %w", ControllerName, err)
	}
	if err := i.opts.Rule.WatchDefinitions(i.mgr, DefinitionsControllerName, i.enqueueAll); err != nil {
		return fmt.Errorf("adding %s: %w", DefinitionsControllerName, err)
	}
	// All conditions have waited for this. Those of clusters without pairs wait for
	// nothing else.
	i.pairs.outcomes.enqueueStatus("")
	return nil
}

// addPairs registers the controller of the pairs.
func (i *inventory) addPairs() error {
	b := builder.ControllerManagedBy(i.mgr).
		Named(ControllerName).
		WithOptions(i.queue().Controller()).
		Watches(&inventoryv1alpha1.ClusterProfile{}, &handler.EnqueueRequestForObject{}, when(kube.OnChange(versionChanged)))
	b = i.routes.Watch(b, measured(contentChanged, i.opts.Metrics))
	for _, obj := range i.opts.GuardObjects {
		b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(i.routes.AllPairs), guardMatters())
	}
	if i.opts.Access != nil {
		b = b.WatchesRawSource(&i.accessTrigger)
	}
	return b.WatchesRawSource(&i.referenceTrigger).WatchesRawSource(&i.everyTrigger).Complete(i.pairs)
}

// enqueueAll enqueues every pair.
func (i *inventory) enqueueAll(ctx context.Context) {
	for _, request := range i.routes.AllPairs(ctx, nil) {
		i.everyTrigger.Enqueue(request.NamespacedName)
	}
}

// queue says how pairs are queued, so that no namespace holds up another and no
// removal waits for first writes.
func (i *inventory) queue() fair.Options {
	return fair.Options{
		Workers:  i.opts.Workers,
		PerGroup: i.opts.WorkersPerNamespace,
		Priority: func(req reconcile.Request) int { return i.pairs.priority(i.ctx, req) },
	}
}

// enqueueEverything enqueues every pair and every condition.
func (i *inventory) enqueueEverything(ctx context.Context) {
	i.pairs.outcomes.enqueueStatus("")
	if !i.opts.Rule.Ready() {
		return // no pair has been looked at yet
	}
	i.enqueueAll(ctx)
}

// followAccess enqueues the profiles of clusters that are reached in another way
// than before. Other pairs need nothing: their profiles will be born with what is
// known then. Nor does a change before the rule is prepared: no pair has been looked
// at yet.
func (i *inventory) followAccess(ctx context.Context) {
	i.accessTrigger.Ready = i.opts.Access.WaitForSync
	i.opts.Access.Subscribe(func(cluster string) {
		if !i.opts.Rule.Ready() {
			return
		}
		pairs, err := i.routes.PairsWithProfile(ctx, cluster)
		if err != nil {
			log.FromContext(ctx).Error(err, "Finding the profiles of a cluster whose access has changed", "cluster", cluster)
		}
		for _, pair := range pairs {
			i.accessTrigger.Enqueue(pair)
		}
	})
}

// addReport registers the controller of the events.
func (i *inventory) addReport() error {
	reporter := newReporter(i.mgr.GetCache(), i.mgr.GetClient(), i.opts.Clock, i.pairs.outcomes)
	return builder.ControllerManagedBy(i.mgr).
		Named(ReportControllerName).
		WithOptions(controller.Options{RateLimiter: retries()}).
		WatchesRawSource(&i.pairs.outcomes.reportTrigger).
		Complete(reporter)
}

func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost)
}

// guardMatters passes changes of a guard's object, except for the initial list: the
// start looks at everything anyway.
func guardMatters() builder.Predicates { return when(kube.AfterStart(), kube.OnChange(guardChanged)) }

func when(conditions ...predicate.Predicate) builder.Predicates {
	return builder.WithPredicates(conditions...)
}
