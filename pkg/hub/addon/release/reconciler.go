package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// reasonCleanupAbandoned is the reason of the event about an addon that was removed without
// clean-up.
const reasonCleanupAbandoned = "CleanupAbandoned"

// worksRetry is how soon to check again for ManifestWorks that are not deleted yet.
// They are polled because the manager's cache does not contain them.
const worksRetry = 5 * time.Second

// maxReleases is how many times the manifests on a hosting cluster are deleted before an
// error says that they are recreated.
const maxReleases = 3

// Reconciler releases addons and clusters whose deletion waits for a spoke that does not
// reconnect, or for a clean-up Job that does not succeed. Its requests are names of clusters.
type Reconciler struct {
	Client client.Client

	// Live reads finalizers and ManifestWorks, which the manager's cache does not contain.
	// It is used only for clusters whose timeout has expired.
	Live client.Reader

	Recorder events.EventRecorder
	Clock    clock.PassiveClock

	Options

	// began is when the first request came, which is right after this manager became the
	// leader.
	began     time.Time
	beginning sync.Once
}

// Reconcile releases what waits for one cluster's spoke, once the timeout has expired.
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
	now := r.Clock.Now()
	r.beginning.Do(func() { r.began = now })
	todo := decideRelease(addon, cluster, r.Options, jobStart{}, now)
	if todo.stuck && addon.DeletionTimestamp.Time.Before(r.began) {
		start, err := r.jobStart(ctx, addon)
		if err != nil {
			return reconcile.Result{}, err
		}
		todo = decideRelease(addon, cluster, r.Options, start, now)
	}
	result := reconcile.Result{RequeueAfter: todo.wait}
	var failed []error
	if todo.addon {
		failed = append(failed, r.releaseAddon(ctx, addon, cluster, todo.stuck))
	}
	if todo.works {
		again, err := r.releaseWorks(ctx, cluster.Name)
		result.RequeueAfter = kube.Sooner(result.RequeueAfter, again)
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// jobStart returns what determines when the clean-up Job could start, for an addon that was
// deleted before this manager started.
func (r *Reconciler) jobStart(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) (jobStart, error) {
	works, err := r.allWorks(ctx, addon)
	if err != nil {
		return jobStart{}, err
	}
	start := jobStart{manager: r.began}
	if work := cleanupWork(addon.Namespace, works); work != nil && work.DeletionTimestamp.IsZero() {
		start.delivered = work.CreationTimestamp.Time
	}
	return start, nil
}

// releaseAddon removes the framework's finalizers from the addon and emits events. It
// leaves a later addon of the same name alone, and one without a finalizer. stuck says
// that the clean-up Job took too long.
func (r *Reconciler) releaseAddon(
	ctx context.Context, observed *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster, stuck bool,
) error {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(observed), addon)
	if err != nil || addon.UID != observed.UID || !ownwork.WaitsForCleanup(addon) {
		return kube.IgnoreGone(err)
	}
	if ownwork.IsHosted(addon) && !r.HostedAgents {
		log.FromContext(ctx).Info("Left an addon as it is, because the manager does not manage agents on hosting clusters",
			"cluster", addon.Namespace)
		return nil
	}
	message := leftBehind(addon.Namespace, r.Unreachable)
	if stuck {
		// Read the works first: they are deleted with the addon.
		works, err := r.allWorks(ctx, addon)
		if err != nil {
			return err
		}
		message = notCleanedUp(
			addon.Namespace, max(r.Job, r.Unreachable), whyNotCleanedUp(addon.Namespace, works))
	}
	left := ownwork.IsHosted(addon)
	released := releasedAddon(addon, left)
	abandoned := !slices.Equal(released.Finalizers, addon.Finalizers)
	if abandoned {
		if err := r.patch(ctx, released, addon); err != nil {
			return kube.IgnoreGone(err)
		}
		log.FromContext(ctx).Info("Abandoned the clean-up of a cluster", "cluster", addon.Namespace, "reason", message)
		r.Recorder.Eventf(addon, nil, corev1.EventTypeWarning, reasonCleanupAbandoned, "LetGo", "%s", message)
		if cluster != nil {
			r.Recorder.Eventf(cluster, addon, corev1.EventTypeWarning, reasonCleanupAbandoned, "LetGo", "%s", message)
		}
	}
	if left {
		return r.releaseHost(ctx, released)
	}
	return nil
}

// releaseHost deletes an addon's manifests on its hosting cluster, which are not deleted
// with the addon, and removes their finalizer once a list shows only works that are being
// deleted. Without the finalizers that wait for the clean-up, the framework recreates them
// only if it was about to.
func (r *Reconciler) releaseHost(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) error {
	for range maxReleases {
		works, err := r.hostedWorks(ctx, addon)
		if err != nil {
			return err
		}
		works = slices.DeleteFunc(works, func(work workv1.ManifestWork) bool { return !work.DeletionTimestamp.IsZero() })
		if len(works) == 0 {
			return kube.IgnoreGone(r.patch(ctx, releasedAddon(addon, false), addon))
		}
		for i := range works {
			if err := r.Client.Delete(ctx, &works[i]); kube.IgnoreGone(err) != nil {
				return fmt.Errorf("deleting ManifestWork %s/%s: %w", works[i].Namespace, works[i].Name, err)
			}
		}
	}
	return fmt.Errorf("the ManifestWorks for cluster %s on its hosting cluster are recreated", addon.Namespace)
}

// releaseWorks removes the work agent's finalizer from this addon's deleted
// ManifestWorks. If some are not deleted yet, it returns how soon to check again.
func (r *Reconciler) releaseWorks(ctx context.Context, cluster string) (time.Duration, error) {
	works, err := r.works(ctx, cluster)
	if err != nil {
		return 0, err
	}
	held, more := heldWorks(works)
	var failed []error
	for _, work := range held {
		if err := r.patch(ctx, releasedWork(work), work); kube.IgnoreGone(err) != nil {
			failed = append(failed, fmt.Errorf("releasing ManifestWork %s/%s: %w", work.Namespace, work.Name, err))
			continue
		}
		log.FromContext(ctx).Info("Released a ManifestWork of an unreachable spoke", "manifestWork", work.Name)
	}
	if more {
		return worksRetry, errors.Join(failed...)
	}
	return 0, errors.Join(failed...)
}

// works reads this addon's ManifestWorks of a cluster. Their names decide, because any client
// may label another ManifestWork.
func (r *Reconciler) works(ctx context.Context, cluster string) ([]workv1.ManifestWork, error) {
	works := &workv1.ManifestWorkList{}
	if !r.HostedAgents { // these two, which are for the cluster's own agent, are all
		for _, name := range ownwork.Names() {
			key := client.ObjectKey{Namespace: cluster, Name: name}
			work, err := kube.Get(ctx, r.Live, key, &workv1.ManifestWork{})
			if err != nil {
				return nil, err
			}
			if work != nil {
				works.Items = append(works.Items, *work)
			}
		}
		return works.Items, nil
	}
	ours := client.MatchingLabels{addonv1beta1.AddonLabelKey: contract.AddonName}
	if err := r.Live.List(ctx, works, client.InNamespace(cluster), ours); err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of cluster %s: %w", cluster, err)
	}
	return slices.DeleteFunc(works.Items, func(work workv1.ManifestWork) bool {
		_, ok := ownwork.ReadName(&work)
		return !ok
	}), nil
}

// allWorks reads an addon's ManifestWorks, on its own cluster and on a hosting cluster.
func (r *Reconciler) allWorks(
	ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn,
) ([]workv1.ManifestWork, error) {
	works, err := r.works(ctx, addon.Namespace)
	if err != nil {
		return nil, err
	}
	hosted, err := r.hostedWorks(ctx, addon)
	return append(works, hosted...), err
}

// hostedWorks reads this addon's ManifestWorks for a cluster whose agent another one hosts.
func (r *Reconciler) hostedWorks(
	ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn,
) ([]workv1.ManifestWork, error) {
	if !ownwork.IsHosted(addon) || !r.HostedAgents {
		return nil, nil
	}
	works := &workv1.ManifestWorkList{}
	ours := client.MatchingLabels{
		addonv1beta1.AddonLabelKey: contract.AddonName, addonv1beta1.AddonNamespaceLabelKey: addon.Namespace,
	}
	if err := r.Live.List(ctx, works, ours); err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks for cluster %s on its hosting cluster: %w", addon.Namespace, err)
	}
	return slices.DeleteFunc(works.Items, func(work workv1.ManifestWork) bool {
		return ownwork.HostedCluster(&work) != addon.Namespace
	}), nil
}

func (r *Reconciler) patch(ctx context.Context, changed, before client.Object) error {
	return r.Client.Patch(ctx, changed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
