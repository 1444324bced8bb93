package decisions

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// ControllerName is the name of the controller that maintains the slices, used alike in logs,
// metrics, field managers and events.
const ControllerName = "hub.decisions"

// sigDecisionCRD is the name of the CRD of SIG-Multicluster's PlacementDecisions.
const sigDecisionCRD = "placementdecisions.multicluster.x-k8s.io"

const (
	// gatherTime is how long additions, and repairs after another client's change, are
	// gathered, so that a hundred clusters that join together cause few writes, and a
	// client that contends for a slice causes one a second.
	gatherTime = time.Second

	// urgentTime is how long withdrawals are gathered.
	urgentTime = 50 * time.Millisecond
)

// Options configure the decisions.
type Options struct {
	// Rule says which clusters Placements choose. Required.
	Rule *selection.Rule

	// Definitions know whether the hub serves PlacementDecisions. Required.
	Definitions *watch.Definitions

	// Workers is how many Placements are processed at a time, and WorkersPerNamespace how
	// many of them in one namespace; 0 means a default.
	Workers             int
	WorkersPerNamespace int

	// Clock is the time.
	Clock clock.PassiveClock
}

// Decisions hold the controller and what others ask about the slices. They are safe for
// concurrent use.
type Decisions struct {
	mgr     manager.Manager
	reader  client.Reader // caches
	opts    Options
	indexed int         // number of indexes added so far
	started atomic.Bool // the slices are known
	waiting atomic.Bool // a Placement waits for the first profile that may be referred to

	unseen   *kube.Memory[types.NamespacedName, unseen] // by Placement
	released kube.Subscribers[types.NamespacedName]     // notified of pairs that must be reconciled

	now    watch.Trigger // Placements that begin or cease to publish
	soon   watch.Trigger // additions and repairs
	urgent watch.Trigger // withdrawals
}

// Add registers the controllers. The one that maintains the slices starts when the rule is
// prepared and the hub serves PlacementDecisions, which may be long after the manager has
// started.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (*Decisions, error) {
	d := &Decisions{
		mgr:    mgr,
		reader: mgr.GetCache(),
		opts:   opts,
		unseen: &kube.Memory[types.NamespacedName, unseen]{},
		soon:   watch.Trigger{Delay: gatherTime},
		urgent: watch.Trigger{Delay: urgentTime},
	}
	opts.Rule.SubscribeReferences(func(pair types.NamespacedName) { d.follow(ctx, pair) })
	start := &watch.LateStart{
		Name:  ControllerName,
		Kinds: watch.Kinds{sigDecisionCRD: inventoryv1alpha1.GroupVersion.WithKind("PlacementDecision")},
		Ready: opts.Rule.Ready,
		Start: d.start,
	}
	if err := start.AddTo(mgr); err != nil {
		return nil, fmt.Errorf("adding the start of %s: %w", ControllerName, err)
	}
	return d, nil
}

// start starts the controller of the slices.
func (d *Decisions) start(ctx context.Context) error {
	for ; d.indexed < len(indexes); d.indexed++ {
		index := indexes[d.indexed]
		if err := d.mgr.GetCache().IndexField(
			ctx, &inventoryv1alpha1.PlacementDecision{}, index.name, index.extract); err != nil {
			return fmt.Errorf("adding index %s: %w", index.name, err)
		}
	}
	informer, err := d.mgr.GetCache().GetInformer(ctx, &inventoryv1alpha1.PlacementDecision{})
	if err != nil {
		return fmt.Errorf("caching PlacementDecisions: %w", err)
	}
	source := watch.Source{CRD: sigDecisionCRD, Informer: informer, OwnWork: true}
	if err := d.opts.Definitions.Follow(ctx, d.mgr.GetCache(), false, source); err != nil {
		return err
	}
	if err := watch.AddWhole(d.mgr, d.addSlices); err != nil {
		return fmt.Errorf("adding %s: %w", ControllerName, err)
	}
	d.opts.Definitions.Subscribe(d.enqueueAll, sigDecisionCRD)
	d.opts.Rule.SubscribeDefinitions(d.enqueueAll)
	d.started.Store(true)
	d.enqueueAll(ctx)
	return nil
}

// addSlices registers the controller of the slices.
func (d *Decisions) addSlices(mgr manager.Manager) error {
	queue := fair.Options{Workers: d.opts.Workers, PerGroup: d.opts.WorkersPerNamespace}
	b := builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WithOptions(queue.Controller()).
		Watches(&inventoryv1alpha1.PlacementDecision{}, watch.HandlerFunc(d.touched),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	return d.opts.Rule.WatchChoices(b, selection.Changed{Scope: d.now.Enqueue, Decisions: d.soon.Enqueue}).
		WatchesRawSource(&d.now).
		WatchesRawSource(&d.soon).
		WatchesRawSource(&d.urgent).
		Complete(newReconciler(d, d.mgr.GetClient()))
}

// touched enqueues the Placement to which a PlacementDecision belongs or belonged, no matter
// who made it. If profiles that it refers to, or did, wait for a withdrawal, that is urgent.
func (d *Decisions) touched(ctx context.Context, obj client.Object) {
	decision, ok := obj.(*inventoryv1alpha1.PlacementDecision)
	if !ok {
		return
	}
	waiting := d.check(ctx, decision.Namespace, referredClusters(decision))
	var placements []types.NamespacedName
	if base := parseName(decision.Name); base != "" {
		placements = append(placements, d.placementOf(ctx, decision.Namespace, base))
	}
	if !isOurs(decision) {
		placements = append(placements, d.placementsWithKey(ctx, decision)...)
	}
	for _, placement := range placements {
		if waiting {
			d.urgent.EnqueueWithPriority(placement, watch.PriorityHigh)
		} else {
			d.soon.Enqueue(placement)
		}
	}
}

// placementOf returns the Placement whose slices' names start with a base. For a Placement
// that is gone and whose name had to be cut, it returns the base itself.
func (d *Decisions) placementOf(ctx context.Context, namespace, base string) types.NamespacedName {
	if len(base) > maxKeyBytes {
		for _, placement := range d.publishing(ctx, namespace) {
			if baseOf(placement.Name) == base {
				return placement
			}
		}
	}
	return types.NamespacedName{Namespace: namespace, Name: base}
}

// placementsWithKey returns the publishing Placements whose decision-key others also use.
func (d *Decisions) placementsWithKey(
	ctx context.Context, decision *inventoryv1alpha1.PlacementDecision,
) []types.NamespacedName {
	key := decision.Labels[inventoryv1alpha1.DecisionKeyLabel]
	if key == "" {
		return nil
	}
	return slices.DeleteFunc(d.publishing(ctx, decision.Namespace), func(placement types.NamespacedName) bool {
		return keyOf(placement.Name) != key
	})
}

// publishing returns the publishing Placements of a namespace, or all of them if the name
// is empty.
func (d *Decisions) publishing(ctx context.Context, namespace string) []types.NamespacedName {
	placements, err := d.opts.Rule.Publishing(ctx, namespace)
	if err != nil { // the cache is being shut down
		log.FromContext(ctx).Error(err, "Cannot find the publishing Placements")
	}
	return placements
}

// enqueueAll enqueues every publishing Placement, and every Placement that has slices.
func (d *Decisions) enqueueAll(ctx context.Context) {
	for _, placement := range d.publishing(ctx, "") {
		d.now.Enqueue(placement)
	}
	list := &inventoryv1alpha1.PlacementDecisionList{}
	if err := d.mgr.GetCache().List(ctx, list, kube.Uncopied); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list PlacementDecisions")
	}
	for i := range list.Items {
		if decision := &list.Items[i]; isOurs(decision) {
			d.now.Enqueue(d.placementOf(ctx, decision.Namespace, parseName(decision.Name)))
		}
	}
}
