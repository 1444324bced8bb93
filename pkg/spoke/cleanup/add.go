package cleanup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ControllerName names the controller in logs, metrics and as field manager.
const ControllerName = "spoke.cleanup"

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Add adds the agent's side to a manager of the spoke. The manager then starts nothing
// before the marker's cache, which holds no other ConfigMap, has synced, so that everything it runs
// can call Requested. addon is the agent's own ManagedClusterAddOn. stop ends publishing permanently
// and returns once no write is in progress.
func Add(ctx context.Context, mgr manager.Manager, addon types.UID, stop func(context.Context) error) error {
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.ConfigMap{}, builder.WithPredicates(kube.Named(contract.CleanupMarkerName))).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(&Reconciler{
			addon:  addon,
			stop:   stop,
			reader: mgr.GetCache(),
			writer: client.WithFieldOwner(mgr.GetClient(), ControllerName),
		})
}

// MarkerKey returns the key of the marker in an install namespace.
func MarkerKey(installNamespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: installNamespace, Name: contract.CleanupMarkerName}
}

// Requested reports whether the removal of that addon has begun, so that its agent must not
// publish.
func Requested(ctx context.Context, reader client.Reader, installNamespace string, addon types.UID) (bool, error) {
	marker := &corev1.ConfigMap{}
	if err := reader.Get(ctx, MarkerKey(installNamespace), marker); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return addressed(marker, addon), nil
}
