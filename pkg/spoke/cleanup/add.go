package cleanup

import (
	"context"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Add adds the agent's side to a manager of the spoke, whose cache holds no other ConfigMap than the marker. The
// manager then starts nothing before that cache has synced, so that nothing is published while the hook's request
// could not be seen. addon is the agent's own ManagedClusterAddOn. stop ends publishing permanently and returns
// once no write is in progress.
func Add(ctx context.Context, mgr manager.Manager, addon types.UID, stop func(context.Context) error) error {
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.ConfigMap{}, builder.WithPredicates(kube.Named(contract.CleanupMarkerName))).
		WithOptions(controller.Options{
			// What cannot be read now may become readable at any time.
			CacheSyncTimeout: math.MaxInt64,
			RateLimiter:      workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
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

// Requested reports whether the removal of that addon has begun, so that its agent must not publish. live
// bypasses all caches: one that is older than the request would let an agent that was restarted publish
// again what the hook has deleted.
func Requested(ctx context.Context, live client.Reader, installNamespace string, addon types.UID) (bool, error) {
	marker, err := read(ctx, live, installNamespace)
	return marker != nil && addressed(marker, addon), err
}

// read reads the marker, which is nil if there is none. It lists, because an agent, whose rights the hook
// of a hosted agent has, too, watches the marker and never gets it.
func read(ctx context.Context, live client.Reader, installNamespace string) (*corev1.ConfigMap, error) {
	key, markers := MarkerKey(installNamespace), &corev1.ConfigMapList{}
	err := live.List(ctx, markers, client.InNamespace(key.Namespace),
		client.MatchingFields{metav1.ObjectNameField: key.Name})
	if err != nil || len(markers.Items) == 0 {
		return nil, err
	}
	return &markers.Items[0], nil
}
