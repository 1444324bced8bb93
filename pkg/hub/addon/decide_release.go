package addon

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// release is what should no longer wait for a cluster's spoke.
type release struct {
	// addon: remove the finalizer with which the framework waits for the clean-up on
	// the spoke.
	addon bool

	// works: remove the finalizer of the spoke's work agent from this addon's deleted
	// ManifestWorks.
	works bool

	// wait is how long until that may change by itself; zero means never.
	wait time.Duration
}

// decide releases what waits for a spoke that has been unreachable for the timeout: the
// addon if it is being deleted, its ManifestWorks if the cluster is being deleted. The
// addon or cluster is nil if it does not exist on the hub.
func decide(
	addon *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster, timeout time.Duration, now time.Time,
) release {
	var result release
	var addonWait, worksWait time.Duration
	if addon != nil {
		result.addon, addonWait = timedOut(addon.DeletionTimestamp, cluster, timeout, now)
	}
	if cluster != nil {
		result.works, worksWait = timedOut(cluster.DeletionTimestamp, cluster, timeout, now)
	}
	result.wait = kube.Sooner(addonWait, worksWait)
	return result
}

// timedOut reports whether the timeout has expired. It starts at the deletion or when
// the spoke became unreachable, whichever is later. If it has not expired, timedOut
// also returns what is left of it, or zero if it has not started.
func timedOut(
	deleted *metav1.Time, cluster *clusterv1.ManagedCluster, timeout time.Duration, now time.Time,
) (bool, time.Duration) {
	if deleted.IsZero() {
		return false, 0
	}
	since, unreachable := unreachableSince(cluster)
	if !unreachable {
		return false, 0
	}
	// A time in the future is from a spoke whose clock is wrong, and must not delay the
	// release.
	if since.Before(deleted.Time) || since.After(now) {
		since = deleted.Time
	}
	if left := since.Add(timeout).Sub(now); left > 0 {
		return false, left
	}
	return true, 0
}

// unreachableSince reports whether a cluster is unreachable, and since when; the zero
// time means since an unknown time. A cluster that is not on the hub is unreachable,
// because nothing there will run the clean-up.
func unreachableSince(cluster *clusterv1.ManagedCluster) (time.Time, bool) {
	if cluster == nil {
		return time.Time{}, true
	}
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case condition == nil:
		return cluster.CreationTimestamp.Time, true
	case condition.Status == metav1.ConditionTrue:
		return time.Time{}, false
	default:
		return condition.LastTransitionTime.Time, true
	}
}

// waitsForCleanup reports whether the addon has the framework's finalizer.
func waitsForCleanup(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.Contains(addon.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer)
}

// releasedAddon returns the addon without the framework's finalizer. Other finalizers
// stay.
func releasedAddon(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	released := addon.DeepCopy()
	released.Finalizers = without(released.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer)
	return released
}

// heldWorks returns the deleted ManifestWorks that still have the work agent's finalizer,
// and whether others are not deleted yet. Only deleted ones may be released: if the
// spoke comes back, its work agent finds them gone and removes what they had applied.
func heldWorks(works []workv1.ManifestWork) (held []*workv1.ManifestWork, more bool) {
	for i := range works {
		switch work := &works[i]; {
		case work.DeletionTimestamp.IsZero():
			more = true
		case slices.Contains(work.Finalizers, workv1.ManifestWorkFinalizer):
			held = append(held, work)
		}
	}
	return held, more
}

// releasedWork returns the ManifestWork without the work agent's finalizer.
func releasedWork(work *workv1.ManifestWork) *workv1.ManifestWork {
	released := work.DeepCopy()
	released.Finalizers = without(released.Finalizers, workv1.ManifestWorkFinalizer)
	return released
}

func without(finalizers []string, finalizer string) []string {
	return slices.DeleteFunc(finalizers, func(f string) bool { return f == finalizer })
}

// leftBehind is the message of the event: what stays on the spoke, how to remove it.
func leftBehind(cluster string, timeout time.Duration) string {
	return fmt.Sprintf("Cluster %s has been unreachable for %s, "+
		"so the removal of its addon %s no longer waits for the clean-up there. "+
		"ClusterClaims labelled %s=%s stay on the spoke (kubectl delete clusterclaims -l %s=%s); "+
		"its agent stays until the klusterlet comes back and removes it",
		cluster, timeout, contract.AddonName,
		contract.LabelManagedBy, contract.ManagedBy, contract.LabelManagedBy, contract.ManagedBy)
}
