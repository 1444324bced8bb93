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
)

// release says what no longer waits for a cluster's spoke.
type release struct {
	// addon is true when the addon should lose the finalizer with which the
	// framework waits for the clean-up on the spoke.
	addon bool

	// works is true when this addon's deleted ManifestWorks should lose the
	// finalizer with which they wait for the spoke's work agent.
	works bool

	// wait is how long until that may change; zero means until something happens.
	wait time.Duration
}

// decide releases what waits for a spoke that has been unreachable for the
// timeout: the addon once it is being removed, the works once the cluster is being
// deleted from the hub. A nil addon or cluster is not on the hub.
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
	result.wait = sooner(addonWait, worksWait)
	return result
}

// timedOut reports whether the spoke has been unreachable for the timeout since
// the later of two moments: the deletion, and when it became unreachable. Otherwise
// it returns what is left of the timeout, or zero if no time runs.
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
	// A time in the future comes from a spoke with a wrong clock and must not delay
	// anything.
	if since.Before(deleted.Time) || since.After(now) {
		since = deleted.Time
	}
	if left := since.Add(timeout).Sub(now); left > 0 {
		return false, left
	}
	return true, 0
}

// unreachableSince returns since when a cluster has not been available; the zero
// time means longer than anyone knows. If the cluster is no longer on the hub,
// nobody is left to run the clean-up.
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

// sooner returns the shorter of two waits, of which zero means forever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// waitsForCleanup reports whether the framework holds the addon.
func waitsForCleanup(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.Contains(addon.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer)
}

// releasedAddon returns the addon without the framework's finalizer. Finalizers of
// others stay.
func releasedAddon(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	released := addon.DeepCopy()
	released.Finalizers = without(released.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer)
	return released
}

// heldWorks returns those works that the work agent's finalizer holds, and
// whether some have not been deleted yet. Only what somebody deleted is released: a
// spoke that comes back finds the works gone, and its work agent removes what they
// had applied.
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

// releasedWork returns the work without the work agent's finalizer.
func releasedWork(work *workv1.ManifestWork) *workv1.ManifestWork {
	released := work.DeepCopy()
	released.Finalizers = without(released.Finalizers, workv1.ManifestWorkFinalizer)
	return released
}

func without(finalizers []string, finalizer string) []string {
	return slices.DeleteFunc(finalizers, func(f string) bool { return f == finalizer })
}

// leftBehind says, for an event, what stays on the spoke and how to remove it.
func leftBehind(cluster string, timeout time.Duration) string {
	return fmt.Sprintf("Cluster %s has been unreachable for %s, "+
		"so the removal of its addon %s no longer waits for the clean-up there. "+
		"ClusterClaims labelled %s=%s stay on the spoke (kubectl delete clusterclaims -l %s=%s); "+
		"its agent stays until the klusterlet comes back and removes it",
		cluster, timeout, contract.AddonName,
		contract.LabelManagedBy, contract.ManagedBy, contract.LabelManagedBy, contract.ManagedBy)
}
