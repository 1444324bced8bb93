package addon

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// verdict is what is to become of an addon that is being removed.
type verdict struct {
	// letGo ends the wait for the clean-up on the spoke.
	letGo bool

	// wait is how long to wait before asking again; zero means until something
	// changes.
	wait time.Duration
}

// decide lets go of an addon that is being removed when its spoke has been
// unreachable for the timeout, counted from the later of the two: the deletion,
// and the moment the spoke became unreachable. A nil cluster is one that is no longer
// on the hub: nobody is left to run the clean-up.
func decide(addon *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster, timeout time.Duration, now time.Time) verdict {
	return decideRemoval(addon.DeletionTimestamp, cluster, timeout, now)
}

// decideDetach lets go of what is on a cluster that is being deleted from the
// hub, by the same rule.
func decideDetach(cluster *clusterv1.ManagedCluster, timeout time.Duration, now time.Time) verdict {
	return decideRemoval(cluster.DeletionTimestamp, cluster, timeout, now)
}

func decideRemoval(deleted *metav1.Time, cluster *clusterv1.ManagedCluster, timeout time.Duration, now time.Time) verdict {
	if deleted.IsZero() {
		return verdict{}
	}
	since, unreachable := unreachableSince(cluster)
	if !unreachable {
		return verdict{}
	}
	// A time to come is a spoke's clock that is wrong; it must not hold up anything.
	if since.Before(deleted.Time) || since.After(now) {
		since = deleted.Time
	}
	if left := since.Add(timeout).Sub(now); left > 0 {
		return verdict{wait: left}
	}
	return verdict{letGo: true}
}

// unreachableSince returns since when a cluster has not been available; the zero
// time means longer than anyone knows.
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

// waitsForCleanup is true when the framework holds the addon.
func waitsForCleanup(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.Contains(addon.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer)
}

// withoutCleanup returns the addon as nobody of ours holds it any more; what
// others hold it for stays.
func withoutCleanup(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	released := addon.DeepCopy()
	released.Finalizers = slices.DeleteFunc(released.Finalizers, func(finalizer string) bool {
		return finalizer == addonv1beta1.AddonPreDeleteHookFinalizer
	})
	return released
}

// leftBehind says, for an event, what stays on the spoke and how to get rid of it.
func leftBehind(cluster string, timeout time.Duration) string {
	return fmt.Sprintf("Cluster %s has been unreachable for %s, so the removal of its addon %s no longer waits for the clean-up there. "+
		"ClusterClaims labelled %s=%s stay on the spoke (kubectl delete clusterclaims -l %s=%s); "+
		"its agent stays until the klusterlet comes back and removes it",
		cluster, timeout, contract.AddonName, contract.LabelManagedBy, contract.ManagedBy, contract.LabelManagedBy, contract.ManagedBy)
}
