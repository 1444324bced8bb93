package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
)

// Names of the controllers, alike in logs, metrics, field managers and events.
const (
	// ControllerName keeps the profiles.
	ControllerName = "hub.inventory"

	// StatusControllerName keeps the condition ProfilesSynced.
	StatusControllerName = "hub.inventory-status"

	// ReportControllerName tells in events what is withheld.
	ReportControllerName = "hub.inventory-report"

	// StartControllerName starts ControllerName once the hub serves what it
	// needs.
	StartControllerName = "hub.inventory-start"
)

const (
	// workers is how many pairs, and how many conditions, are worked on at a
	// time. Each waits for the API server nearly all the time.
	workers = 8

	// Failed pairs are tried again after retryFirst, then at doubling intervals
	// up to retryMost: a quota that was raised sends no event.
	retryFirst = 20 * time.Millisecond
	retryMost  = time.Minute

	// servedRecheck is how soon a CRD that exists is asked for again until it is
	// served.
	servedRecheck = time.Second
)

// Options configure the inventory.
type Options struct {
	// Guard says whether profiles may be written. Required.
	Guard Guard

	// GuardObjects are of the kinds that the guard's verdict is made of, but for
	// their status: after a change every pair is looked at again. The manager's
	// cache is to be restricted to the objects that matter.
	GuardObjects []client.Object

	// LabelAllow are patterns, as of path.Match, of the ManagedCluster label
	// keys that are copied to profiles. Keys with a meaning for this addon are
	// never copied.
	LabelAllow []string

	// Access says how clusters are reached. Nil means that access providers are
	// not this addon's to write.
	Access Access

	// OnSelection is called when the rule's answer for a pair has changed, or the
	// profile in its place has come, gone, or begun to go. It must return at once. Nil
	// means that nobody wants to know.
	OnSelection func(pair types.NamespacedName)

	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// Access says how clusters are reached.
type Access interface {
	// Of returns what the access providers of a cluster's profiles are to be. It
	// reads memory only.
	Of(cluster string) access.Decision

	// Subscribe has changed called whenever Of may say something else of a cluster:
	// of every cluster when the name is empty.
	Subscribe(changed func(cluster string))

	// WaitForSync returns when Of says what can be said after a start, so that a
	// profile is born with its access providers.
	WaitForSync(ctx context.Context) error
}

// Guard says whether this addon may write profiles now.
type Guard interface {
	// Verdict reads caches only. On an error nothing is written, and it is asked
	// again.
	Verdict(ctx context.Context) (GuardVerdict, error)
}

// GuardVerdict is a guard's answer. If it does not allow writing, Reason and
// Message become those of the condition ProfilesSynced.
type GuardVerdict struct {
	Allowed bool
	Reason  string
	Message string
}

// GuardFunc is a function that is a Guard.
type GuardFunc func(ctx context.Context) (GuardVerdict, error)

// Verdict calls the function.
func (f GuardFunc) Verdict(ctx context.Context) (GuardVerdict, error) { return f(ctx) }

// Inventory is the controllers and what they share.
type Inventory struct {
	mgr      manager.Manager
	opts     Options
	pairs    *Reconciler
	status   *StatusReconciler
	reporter *Reporter
	routes   routes
	started  *atomic.Bool
	indexed  int
}

// Add registers the controllers. The one that keeps the profiles starts when the
// hub serves ClusterProfiles and all they are computed from, which may be long
// after the manager has started.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (*Inventory, error) {
	if opts.Guard == nil {
		return nil, errors.New("inventory: no guard given")
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	reader, writer := client.Reader(mgr.GetCache()), mgr.GetClient()
	pairs := newReconciler(reader, writer, opts)
	i := &Inventory{
		mgr:      mgr,
		opts:     opts,
		pairs:    pairs,
		routes:   routes{reader: reader, outcomes: pairs.outcomes, settling: pairs.settling},
		reporter: newReporter(reader, writer, opts.Clock, pairs.outcomes),
		started:  &atomic.Bool{},
	}
	i.status = newStatusReconciler(i.routes, writer, opts, i.started)
	if err := i.addStart(); err != nil {
		return nil, fmt.Errorf("adding %s: %w", StartControllerName, err)
	}
	if err := i.addStatus(); err != nil {
		return nil, fmt.Errorf("adding %s: %w", StatusControllerName, err)
	}
	if err := i.addReport(); err != nil {
		return nil, fmt.Errorf("adding %s: %w", ReportControllerName, err)
	}
	log.FromContext(ctx).V(1).Info("Added the inventory", "labelAllow", opts.LabelAllow)
	return i, nil
}

// addStart registers what starts the pairs' controller.
func (i *Inventory) addStart() error {
	return builder.ControllerManagedBy(i.mgr).
		Named(StartControllerName).
		WatchesMetadata(partial(crdKind), toOne(StartControllerName), builder.WithPredicates(isRelevantCRD(), onChange(never))).
		Complete(reconcile.Func(i.start))
}

// start starts the pairs' controller if everything it watches is served.
func (i *Inventory) start(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if i.started.Load() {
		return reconcile.Result{}, nil
	}
	missing, err := unserved(ctx, i.mgr.GetCache(), append(slices.Clone(sourceCRDs), profileCRD)...)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(missing) > 0 {
		log.FromContext(ctx).Info("Waiting for the hub to serve what profiles are made of and written to", "missing", missing)
		return reconcile.Result{}, nil
	}
	if served, err := i.served(); !served || err != nil {
		return reconcile.Result{RequeueAfter: servedRecheck}, err
	}
	for ; i.indexed < len(indexes); i.indexed++ {
		index := indexes[i.indexed]
		if err := i.mgr.GetFieldIndexer().IndexField(ctx, index.object, index.name, index.extract); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding index %s: %w", index.name, err)
		}
	}
	if err := i.addPairs(ctx); err != nil {
		return reconcile.Result{}, fmt.Errorf("adding %s: %w", ControllerName, err)
	}
	i.started.Store(true)
	// Conditions have waited for this, those of clusters without pairs for nothing
	// else.
	for _, request := range i.status.allClusters(ctx, nil) {
		i.pairs.outcomes.clusters.notify(request.Name)
	}
	return reconcile.Result{}, nil
}

// served tells whether the client can already map every kind: between a CRD's
// creation and its being served there is a moment.
func (i *Inventory) served() (bool, error) {
	for _, index := range indexes {
		kind, err := apiutil.GVKForObject(index.object, i.mgr.GetScheme())
		if err != nil {
			return false, err
		}
		_, err = i.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("asking for %s: %w", kind, err)
		}
	}
	return true, nil
}

// addPairs registers the controller of the pairs.
func (i *Inventory) addPairs(ctx context.Context) error {
	// Every informer is there before the first event, because routes read other
	// kinds than their own.
	for _, obj := range []client.Object{partial(namespaceKind), partial(crdKind), &addonv1beta1.ManagedClusterAddOn{}} {
		if _, err := i.mgr.GetCache().GetInformer(ctx, obj); err != nil {
			return err
		}
	}
	b := builder.ControllerManagedBy(i.mgr).
		Named(ControllerName).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
		}).
		Watches(&inventoryv1alpha1.ClusterProfile{}, &handler.EnqueueRequestForObject{}, when(onChange(versionChanged))).
		Watches(&clusterv1.ManagedCluster{}, route(i.routes.profilesForCluster), when(onChange(clusterChanged))).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, route(i.routes.profilesForAddon), when(onChange(never))).
		Watches(&clusterv1beta2.ManagedClusterSet{}, route(i.routes.profilesForSet), when(onChange(setChanged))).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, route(i.routes.profilesForBinding), when(onChange(bindingChanged))).
		Watches(&clusterv1beta1.Placement{}, route(i.routes.profilesForPlacement), when(ofPublishing(placementScopeChanged))).
		Watches(&clusterv1beta1.Placement{}, route(i.routes.profilesAwaiting), when(ofPublishing(placementStatusChanged))).
		Watches(&clusterv1beta1.PlacementDecision{}, route(i.routes.profilesForDecision), when(onChange(decisionChanged))).
		WatchesMetadata(partial(namespaceKind), route(i.routes.profilesForNamespace), when(onChange(requirementChanged))).
		WatchesMetadata(partial(crdKind), route(i.routes.allProfiles), when(isRelevantCRD(), afterStart(onChange(never))))
	for _, obj := range i.opts.GuardObjects {
		b = b.Watches(obj, route(i.routes.allProfiles), when(afterStart(onChange(guardChanged))))
	}
	if i.opts.Access != nil {
		b = b.WatchesRawSource(accessChanges{Access: i.opts.Access, routes: i.routes})
	}
	return b.Complete(i.pairs)
}

// addStatus registers the controller of the condition.
func (i *Inventory) addStatus() error {
	b := builder.ControllerManagedBy(i.mgr).
		Named(StatusControllerName).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
		}).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, route(clusterOfAddon), when(onChange(reportChanged))).
		WatchesMetadata(partial(crdKind), route(i.status.allClusters), when(isRelevantCRD(), afterStart(onChange(never)))).
		WatchesRawSource(&i.pairs.outcomes.clusters)
	for _, obj := range i.opts.GuardObjects {
		b = b.Watches(obj, route(i.status.allClusters), when(afterStart(onChange(guardChanged))))
	}
	return b.Complete(i.status)
}

// addReport registers the controller of the events.
func (i *Inventory) addReport() error {
	return builder.ControllerManagedBy(i.mgr).
		Named(ReportControllerName).
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost)}).
		WatchesRawSource(&i.pairs.outcomes.namespaces).
		Complete(i.reporter)
}

// accessChanges is a source of the profiles of clusters that are reached in
// another way than before. The controller does not begin before it knows the ways.
type accessChanges struct {
	Access
	routes routes
}

// Start implements source.Source.
func (a accessChanges) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	a.Subscribe(func(cluster string) {
		for _, request := range a.routes.profilesOf(ctx, cluster) {
			queue.Add(request)
		}
	})
	return nil
}

func route(find handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(find)
}

func when(conditions ...predicate.Predicate) builder.Predicates {
	return builder.WithPredicates(conditions...)
}

// toOne leads from anything to a single request.
func toOne(name string) handler.EventHandler {
	return route(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// clusterOfAddon leads from an addon to its cluster.
func clusterOfAddon(_ context.Context, addon client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: addon.GetNamespace()}}}
}
