package publish

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// ControllerName names the controller in logs, metrics and as field manager.
const ControllerName = "spoke.publish"

const (
	// workers is enough for a burst of properties.
	workers = 4

	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// Add adds the controller to a manager of the spoke that serves ClusterProperty as
// api says. The manager must be stopped when that changes. Properties with reserved names are
// not published.
func Add(mgr manager.Manager, api property.API, reserved property.Reserved) error {
	controlled := builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		Watches(&clusterv1alpha1.ClusterClaim{}, &handler.EnqueueRequestForObject{})
	if api.Served() {
		controlled = controlled.Watches(property.New(api.Version), &handler.EnqueueRequestForObject{},
			builder.WithPredicates(kube.OnChange(propertyChanged)))
	}
	return controlled.
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			// An API that cannot be read now may become readable at any time.
			CacheSyncTimeout: math.MaxInt64,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstRetry, lastRetry),
		}).
		Complete(&Reconciler{
			api:      api,
			reserved: reserved,
			cached:   mgr.GetCache(),
			live:     mgr.GetAPIReader(),
			writer:   client.WithFieldOwner(mgr.GetClient(), ControllerName),
			clock:    clock.RealClock{},
		})
}

// propertyChanged reports whether any of the fields changed that the claim depends on.
func propertyChanged(before, after *unstructured.Unstructured) bool {
	return property.Read(before) != property.Read(after)
}
