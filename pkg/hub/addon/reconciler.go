package addon

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// reasonCleanupAbandoned is the reason of the event that says an addon was removed
// without its clean-up.
const reasonCleanupAbandoned = "CleanupAbandoned"

// worksRetry is how soon to look again at works that are about to be deleted. The
// manager's cache does not hold works.
const worksRetry = 5 * time.Second

// Reconciler ends the wait of addons, and of clusters, for a spoke that does not
// come back. Its requests are clusters.
type Reconciler struct {
	Client client.Client

	// Live reads what the manager's cache does not hold, finalizers and works. It is
	// used only for clusters whose time has come.
	Live client.Reader

	Recorder events.EventRecorder
	Clock    clock.PassiveClock

	// Timeout is how long a spoke may be unreachable.
	Timeout time.Duration
}

var _ reconcile.Reconciler = &Reconciler{}

// Reconcile releases what waits for one cluster's spoke, once its time has come.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	addonKey := client.ObjectKey{Namespace: req.Name, Name: contract.AddonName}
	addon, err := kube.Get(ctx, r.Client, addonKey, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil {
		return reconcile.Result{}, err
	}
	cluster, err := kube.Get(ctx, r.Client, req.NamespacedName, &clusterv1.ManagedCluster{})
	if err != nil {
		return reconcile.Result{}, err
	}
	todo := decide(addon, cluster, r.Timeout, r.Clock.Now())
	result := reconcile.Result{RequeueAfter: todo.wait}
	var failed []error
	if todo.addon {
		failed = append(failed, r.releaseAddon(ctx, addon, cluster))
	}
	if todo.works {
		again, err := r.releaseWorks(ctx, cluster.Name)
		result.RequeueAfter = sooner(result.RequeueAfter, again)
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// releaseAddon takes the framework's finalizer off the very addon that was judged,
// and announces it. If nothing held the addon, it does nothing.
func (r *Reconciler) releaseAddon(
	ctx context.Context, judged *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster,
) error {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(judged), addon)
	if err != nil || addon.UID != judged.UID || !waitsForCleanup(addon) {
		return client.IgnoreNotFound(err)
	}
	if err := r.patch(ctx, releasedAddon(addon), addon); err != nil {
		return client.IgnoreNotFound(err)
	}
	message := leftBehind(addon.Namespace, r.Timeout)
	log.FromContext(ctx).Info(message)
	r.Recorder.Eventf(addon, nil, corev1.EventTypeWarning, reasonCleanupAbandoned, "LetGo", "%s", message)
	if cluster != nil {
		r.Recorder.Eventf(cluster, addon, corev1.EventTypeWarning, reasonCleanupAbandoned, "LetGo", "%s", message)
	}
	return nil
}

// releaseWorks takes the work agent's finalizer off this addon's deleted works. It
// returns how soon to look again at those that are not deleted yet.
func (r *Reconciler) releaseWorks(ctx context.Context, cluster string) (time.Duration, error) {
	works := &workv1.ManifestWorkList{}
	ours := client.MatchingLabels{addonv1beta1.AddonLabelKey: contract.AddonName}
	if err := r.Live.List(ctx, works, client.InNamespace(cluster), ours); err != nil {
		return 0, fmt.Errorf("listing the works of cluster %s: %w", cluster, err)
	}
	held, more := heldWorks(works.Items)
	for _, work := range held {
		if err := r.patch(ctx, releasedWork(work), work); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("releasing work %s/%s: %w", work.Namespace, work.Name, err)
		}
		log.FromContext(ctx).Info("Released the work of a spoke that does not come back", "manifestWork", work.Name)
	}
	if more {
		return worksRetry, nil
	}
	return 0, nil
}

func (r *Reconciler) patch(ctx context.Context, changed, before client.Object) error {
	return r.Client.Patch(ctx, changed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
