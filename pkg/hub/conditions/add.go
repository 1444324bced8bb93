package conditions

import (
	"context"
	"fmt"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// ControllerName is the controller's name in logs, metrics, field managers and
// events.
const ControllerName = "hub.conditions"

const (
	// workers is how many addons are written at a time. They are few, so that the
	// conditions of a thousand clusters leave the API server free for profiles and copies.
	workers = 2

	// delay is how long a cluster waits after a change. No addon is written more often.
	delay = time.Second

	// A failed write is retried after retryFirst, then at doubling intervals up to
	// retryMost.
	retryFirst = delay
	retryMost  = time.Minute
)

// written are the types of the conditions that the manager writes.
var written = []string{
	contract.ConditionConfigurationApplied, contract.ConditionProfilesSynced, contract.ConditionCredentialsSynced,
	contract.ConditionDegraded,
}

// Source determines one condition for every cluster's addon.
type Source interface {
	// Type is the condition's type.
	Type() string

	// Desired returns the desired condition of a cluster's addon, or nil while it is
	// unknown; then the condition stays as it is. Desired reads caches and memory only.
	Desired(ctx context.Context, cluster string) (*Desired, error)

	// Subscribe has changed called whenever Desired may return something else for a
	// cluster, or, with an empty name, for any cluster. changed returns at once.
	Subscribe(changed func(cluster string))
}

// Watcher is a Source that also depends on objects.
type Watcher interface {
	Source

	// Watch adds watches whose events enqueue every cluster.
	Watch(b *builder.Builder, everyCluster handler.EventHandler) *builder.Builder
}

// Options configure the writing of conditions.
type Options struct {
	// Sources are all conditions of the manager.
	Sources []Source

	// Clock is the time.
	Clock clock.PassiveClock
}

// Add registers the controller. The manager's cache must hold this addon's
// ManagedClusterAddOns with all their conditions.
func Add(ctx context.Context, mgr manager.Manager, opts Options) error {
	routes := &routes{ctx: ctx, reader: mgr.GetCache(), trigger: &watch.Trigger{Delay: delay}}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost)
	oneCluster := watch.HandlerFunc(func(_ context.Context, addon client.Object) { routes.enqueue(addon.GetNamespace()) })
	everyCluster := watch.HandlerFunc(func(context.Context, client.Object) { routes.enqueue("") })
	b := builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: limiter}).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, oneCluster, builder.WithPredicates(kube.OnChange(addonChanged))).
		WatchesRawSource(routes.trigger)
	for _, source := range opts.Sources {
		source.Subscribe(routes.enqueue)
		if watcher, ok := source.(Watcher); ok {
			b = watcher.Watch(b, everyCluster)
		}
	}
	if err := b.Complete(newReconciler(mgr.GetCache(), mgr.GetClient(), opts)); err != nil {
		return fmt.Errorf("adding %s: %w", ControllerName, err)
	}
	return nil
}

// routes map events to clusters. All go through one trigger, so that a cluster waits for its
// delay in any case.
type routes struct {
	ctx     context.Context // for reads from the cache, which do not block
	reader  client.Reader
	trigger *watch.Trigger
}

// enqueue enqueues one cluster, or all of them if the name is empty.
func (r *routes) enqueue(cluster string) {
	if cluster != "" {
		r.trigger.EnqueueWithPriority(types.NamespacedName{Name: cluster}, watch.PriorityLow)
		return
	}
	addons := &addonv1beta1.ManagedClusterAddOnList{}
	if err := r.reader.List(r.ctx, addons, kube.Uncopied); err != nil {
		log.FromContext(r.ctx).Error(err, "Cannot list ManagedClusterAddOns")
	}
	for i := range addons.Items {
		r.enqueue(addons.Items[i].Namespace)
	}
}

// addonChanged compares the fields of an addon that decide reads.
func addonChanged(before, after *addonv1beta1.ManagedClusterAddOn) bool {
	if isSetUp(before) != isSetUp(after) || reportOf(before) != reportOf(after) {
		return true
	}
	return slices.ContainsFunc(written, func(conditionType string) bool {
		return kube.ConditionChanged(before.Status.Conditions, after.Status.Conditions, conditionType)
	})
}
