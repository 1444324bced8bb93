package release

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/constants"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// startPatience is how long a manager that has just started leaves a clean-up Job to the
// framework, which may find that it has succeeded meanwhile.
const startPatience = time.Minute

// jobStart is what determines when a clean-up Job could start. The zero value means when the
// addon was deleted.
type jobStart struct {
	// manager is when this manager started.
	manager time.Time

	// delivered is when the Job's ManifestWork was created; zero if there is none.
	delivered time.Time
}

// release is what should no longer wait for a cluster's spoke.
type release struct {
	// addon: remove the finalizer with which the framework waits for the clean-up on
	// the spoke.
	addon bool

	// stuck: the spoke has not been unreachable for long enough; its clean-up Job has
	// not succeeded.
	stuck bool

	// works: remove the finalizer of the spoke's work agent from this addon's deleted
	// ManifestWorks.
	works bool

	// wait is the time until that may change by itself; zero means never.
	wait time.Duration
}

// decideRelease releases what waits for a spoke that has been unreachable for too long: the addon
// if it is being deleted, its ManifestWorks if the cluster is being deleted. It also
// releases an addon whose clean-up Job has taken too long. The addon or cluster is nil if
// it does not exist on the hub.
func decideRelease(
	addon *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster, o Options, start jobStart, now time.Time,
) release {
	var result release
	var addonWait, worksWait time.Duration
	if addon != nil {
		result.addon, addonWait = timedOut(addon.DeletionTimestamp, cluster, o.Unreachable, now)
		if !result.addon {
			var jobWait time.Duration
			result.stuck, jobWait = jobTimedOut(addon.DeletionTimestamp, o, start, now)
			result.addon, addonWait = result.stuck, kube.Sooner(addonWait, jobWait)
		}
	}
	if cluster != nil {
		result.works, worksWait = timedOut(cluster.DeletionTimestamp, cluster, o.Unreachable, now)
	}
	if result.addon {
		addonWait = 0
	}
	result.wait = kube.Sooner(addonWait, worksWait)
	return result
}

// jobTimedOut reports whether the clean-up Job has taken too long, and otherwise the
// remaining time, or zero if the time has not started. It does not matter whether the spoke
// was reachable all the time: one that is reachable only at times must not delay the removal
// forever. But the limit for a Job is never the shorter one.
//
// The time starts when the Job's ManifestWork was created: from then on the spoke needs no
// manager to run the Job, and no restart of a manager changes that time. Without a
// ManifestWork, no manager may have run since the deletion, and the time starts with this
// one.
func jobTimedOut(deleted *metav1.Time, o Options, start jobStart, now time.Time) (bool, time.Duration) {
	if deleted.IsZero() {
		return false, 0
	}
	since := start.delivered
	if since.IsZero() {
		since = start.manager
	}
	if since.Before(deleted.Time) {
		since = deleted.Time
	}
	limit := max(o.Job, o.Unreachable)
	end := since.Add(limit)
	if earliest := start.manager.Add(min(startPatience, limit)); end.Before(earliest) {
		end = earliest
	}
	if left := end.Sub(now); left > 0 {
		return false, left
	}
	return true, 0
}

// timedOut reports whether the timeout has expired. It starts at the deletion or when the
// spoke became unreachable, whichever is later. If it has not expired, timedOut also
// returns the remaining time, or zero if it has not started.
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
	// A time in the future comes from a spoke whose clock is wrong, and must not delay the
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

// releasedAddon returns the addon without the framework's finalizers. If left is true, it
// keeps the one that waits until nothing is left on the hosting cluster. Other finalizers
// stay.
func releasedAddon(addon *addonv1beta1.ManagedClusterAddOn, left bool) *addonv1beta1.ManagedClusterAddOn {
	released := addon.DeepCopy()
	for _, finalizer := range ownwork.CleanupFinalizers() {
		if !left || finalizer != addonv1beta1.AddonHostingManifestFinalizer {
			controllerutil.RemoveFinalizer(released, finalizer)
		}
	}
	return released
}

// heldWorks returns the deleted ManifestWorks that still have the work agent's finalizer, and
// whether others are not deleted yet. Only deleted ones may be released: if the spoke
// reconnects, its work agent finds them gone and removes what they had applied.
func heldWorks(works []workv1.ManifestWork) (held []*workv1.ManifestWork, more bool) {
	for i := range works {
		switch work := &works[i]; {
		case work.DeletionTimestamp.IsZero():
			more = true
		case controllerutil.ContainsFinalizer(work, workv1.ManifestWorkFinalizer):
			held = append(held, work)
		}
	}
	return held, more
}

func releasedWork(work *workv1.ManifestWork) *workv1.ManifestWork {
	released := work.DeepCopy()
	controllerutil.RemoveFinalizer(released, workv1.ManifestWorkFinalizer)
	return released
}

// leftBehind is the message of the event: what stays on the spoke, and how to remove it.
func leftBehind(cluster string, timeout time.Duration) string {
	return fmt.Sprintf("Cluster %s has been unreachable for %s, "+
		"so the removal of its addon %s no longer waits for the clean-up there. %s; "+
		"its agent stays until the klusterlet that runs it comes back and removes it",
		cluster, timeout, contract.AddonName, claimsLeft())
}

// notCleanedUp is the message of the event about a spoke whose clean-up Job did not succeed:
// why if that is known, what stays there and how to remove it.
func notCleanedUp(cluster string, timeout time.Duration, why string) string {
	return fmt.Sprintf("The clean-up Job on cluster %s has not succeeded within %s, "+
		"so the removal of its addon %s no longer waits for it: %s. %s; the klusterlet removes the agent and the Job",
		cluster, timeout, contract.AddonName, why, claimsLeft())
}

func claimsLeft() string {
	return fmt.Sprintf("ClusterClaims labeled %s=%s stay on the spoke (kubectl delete clusterclaims -l %s=%s)",
		contract.LabelManagedBy, contract.ManagedBy, contract.LabelManagedBy, contract.ManagedBy)
}

// cleanupWork returns the ManifestWork with a cluster's clean-up Job, or nil.
func cleanupWork(cluster string, works []workv1.ManifestWork) *workv1.ManifestWork {
	at := slices.IndexFunc(works, func(work workv1.ManifestWork) bool {
		found, ok := ownwork.ReadName(&work)
		return ok && found.Cleanup && ownwork.ClusterOf(&work) == cluster
	})
	if at < 0 {
		return nil
	}
	return &works[at]
}

// whyNotCleanedUp says what is known about a clean-up Job that did not succeed, from this
// addon's ManifestWorks.
func whyNotCleanedUp(cluster string, works []workv1.ManifestWork) string {
	work := cleanupWork(cluster, works)
	if work == nil {
		return fmt.Sprintf("there is no ManifestWork %s to deliver it", constants.PreDeleteHookWorkName(contract.AddonName))
	}
	status := work.Status
	for _, manifest := range status.ResourceStatus.Manifests {
		if why := ownwork.Refusal(manifest.Conditions); why != "" {
			return "the spoke refused it: " + why
		}
	}
	if why := ownwork.Refusal(status.Conditions); why != "" {
		return "the spoke refused it: " + why
	}
	if !apimeta.IsStatusConditionTrue(status.Conditions, workv1.WorkApplied) {
		return fmt.Sprintf("the spoke's work agent has not applied ManifestWork %s", work.Name)
	}
	return "it exists but does not complete; see its pods and events on the spoke"
}
