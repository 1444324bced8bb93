package addon

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reasonCleanupAbandoned is the reason of the event that says an addon went
// without its clean-up.
const reasonCleanupAbandoned = "CleanupAbandoned"

// Reconciler ends the removal of addons whose spoke does not come back.
type Reconciler struct {
	Client client.Client

	// Live reads the finalizers, which the manager's cache need not hold. It is
	// asked only about an addon whose time has come.
	Live client.Reader

	Recorder events.EventRecorder
	Clock    clock.PassiveClock

	// Timeout is how long a spoke may be unreachable.
	Timeout time.Duration
}

var _ reconcile.Reconciler = &Reconciler{}

// Reconcile looks at one addon that is being removed.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := r.Client.Get(ctx, req.NamespacedName, addon); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := r.observeCluster(ctx, req.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	verdict := decide(addon, cluster, r.Timeout, r.Clock.Now())
	if !verdict.letGo {
		return reconcile.Result{RequeueAfter: verdict.wait}, nil
	}
	held, err := r.letGo(ctx, addon)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if held {
		r.tell(ctx, addon, cluster)
	}
	return reconcile.Result{}, nil
}

// observeCluster returns nil when the cluster is no longer on the hub.
func (r *Reconciler) observeCluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return cluster, nil
}

// letGo removes the framework's finalizer from the very addon that was judged,
// and leaves every other one. It returns false when there was none to remove.
func (r *Reconciler) letGo(ctx context.Context, judged *addonv1beta1.ManagedClusterAddOn) (bool, error) {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(judged), addon)
	if err != nil || addon.UID != judged.UID || !waitsForCleanup(addon) {
		return false, err
	}
	return true, r.Client.Patch(ctx, withoutCleanup(addon), client.MergeFromWithOptions(addon, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) tell(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster) {
	message := leftBehind(addon.Namespace, r.Timeout)
	log.FromContext(ctx).Info(message)
	r.Recorder.Eventf(addon, nil, corev1.EventTypeWarning, reasonCleanupAbandoned, "LetGo", "%s", message)
	if cluster != nil {
		r.Recorder.Eventf(cluster, addon, corev1.EventTypeWarning, reasonCleanupAbandoned, "LetGo", "%s", message)
	}
}
