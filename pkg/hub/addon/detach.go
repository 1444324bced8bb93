package addon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// DetachControllerName is the name of the controller that keeps this addon from
// holding up the deletion of a ManagedCluster.
const DetachControllerName = "hub.detach"

// detachRetry is how soon to look again at works that are about to be deleted.
const detachRetry = 5 * time.Second

// DetachReconciler releases this addon's ManifestWorks on a cluster that is being
// deleted from the hub and whose spoke does not come back. It only releases what
// somebody has deleted: a spoke that comes back finds the works gone, and its work
// agent removes what they had applied.
type DetachReconciler struct {
	Client client.Client

	// Live lists the works of one cluster, once its time has come.
	Live client.Reader

	Clock clock.PassiveClock

	// Timeout is how long a spoke may be unreachable.
	Timeout time.Duration
}

var _ reconcile.Reconciler = &DetachReconciler{}

// Reconcile looks at one cluster that is being deleted.
func (r *DetachReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	verdict := decideDetach(cluster, r.Timeout, r.Clock.Now())
	if !verdict.letGo {
		return reconcile.Result{RequeueAfter: verdict.wait}, nil
	}
	works := &workv1.ManifestWorkList{}
	err := r.Live.List(ctx, works, client.InNamespace(cluster.Name), client.MatchingLabels{addonv1beta1.AddonLabelKey: contract.AddonName})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the works of cluster %s: %w", cluster.Name, err)
	}
	return r.release(ctx, works.Items)
}

// release takes the work agent's finalizer off the works that are being deleted,
// and comes back for those that are not yet.
func (r *DetachReconciler) release(ctx context.Context, works []workv1.ManifestWork) (reconcile.Result, error) {
	result := reconcile.Result{}
	for i := range works {
		work := &works[i]
		if work.DeletionTimestamp.IsZero() {
			result.RequeueAfter = detachRetry
			continue
		}
		if !slices.Contains(work.Finalizers, workv1.ManifestWorkFinalizer) {
			continue
		}
		released := work.DeepCopy()
		released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == workv1.ManifestWorkFinalizer })
		if err := r.Client.Patch(ctx, released, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("releasing work %s/%s: %w", work.Namespace, work.Name, err)
		}
		log.FromContext(ctx).Info("Released the work of a spoke that does not come back", "manifestWork", work.Name)
	}
	return result, nil
}
