package report

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// ControllerName names the controller in logs, metrics and as field manager.
const ControllerName = "spoke.report"

const (
	// collectTime is how long events are collected before the report, so that it skips
	// intermediate states.
	collectTime = 500 * time.Millisecond

	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
)

// Options says what is reported and where.
type Options struct {
	Situation

	// Addon is the ManagedClusterAddOn to report on, and AddonUID its UID.
	Addon    types.NamespacedName
	AddonUID types.UID

	// Hub is the cluster of that object. The caller starts its cache, which need not
	// have synced.
	Hub cluster.Cluster

	Metrics *Metrics // of the last report
}

// Add adds the controller to a manager of the spoke. The manager must be stopped
// when the options change.
func Add(mgr manager.Manager, opts Options) error {
	c, err := newController(ControllerName, mgr, &Reconciler{
		situation: opts.Situation,
		addonUID:  opts.AddonUID,
		metrics:   opts.Metrics,
		clock:     clock.RealClock{},
		spoke:     mgr.GetCache(),
		hub:       opts.Hub.GetCache(),
		status:    client.WithFieldOwner(opts.Hub.GetClient(), ControllerName).Status(),
	})
	if err != nil {
		return err
	}
	toAddon := enqueueAfterCollecting(opts.Addon)
	addons := &addonv1beta1.ManagedClusterAddOn{}
	if err := c.Watch(source.Kind[client.Object](opts.Hub.GetCache(), addons, toAddon)); err != nil {
		return err
	}
	if opts.Stopped || !opts.API.Served() {
		return nil
	}
	return watchSpoke(c, mgr, opts.API, toAddon)
}

// newController returns a controller that handles one request at a time: its reconciler has its own state.
// The hub may be unreachable for any length of time, and an API of the spoke that cannot be read now may
// become readable at any time.
func newController(name string, mgr manager.Manager, reconciler reconcile.Reconciler) (controller.Controller, error) {
	return controller.New(name, mgr, controller.Options{
		MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			firstRetry, lastRetry),
		CacheSyncTimeout: math.MaxInt64,
		Reconciler:       reconciler,
	})
}

// watchSpoke makes a controller handle all events of claims and properties.
func watchSpoke(c controller.Controller, mgr manager.Manager, api property.API, toAll handler.EventHandler) error {
	claims := &clusterv1alpha1.ClusterClaim{}
	if err := c.Watch(source.Kind[client.Object](mgr.GetCache(), claims, toAll)); err != nil {
		return err
	}
	return c.Watch(source.Kind[client.Object](mgr.GetCache(), property.New(api.Version), toAll))
}

// enqueueAfterCollecting maps every event to the one addon, after collectTime.
func enqueueAfterCollecting(addon types.NamespacedName) handler.EventHandler {
	type queueOf = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(q queueOf) { q.AddAfter(reconcile.Request{NamespacedName: addon}, collectTime) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queueOf) { enqueue(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queueOf) { enqueue(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queueOf) { enqueue(q) },
	}
}
