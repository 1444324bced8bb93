package release

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ControllerName is the name of the controller that stops waiting for spokes that do not
// reconnect, or are not cleaned up.
const ControllerName = "hub.cleanup-timeout"

// Options are how long the removal of an addon waits for the clean-up on the spoke.
type Options struct {
	// Unreachable is how long a spoke may be unreachable.
	Unreachable time.Duration

	// Job is how long the clean-up Job may take on a reachable spoke. It runs several times
	// meanwhile: one attempt ends after three minutes at most, stays visible for three
	// more, and the work agent takes up to about six minutes to repeat it.
	Job time.Duration

	// HostedAgents is true if hosted agents are managed. Otherwise ManifestWorks are read by
	// name, and an addon that may have some on a hosting cluster is never released.
	HostedAgents bool
}

// Add adds the controller hub.cleanup-timeout. The manager's cache must hold the deletion times
// of the ManagedClusterAddOns and ManagedClusters, and the ManagedClusters' condition Available.
func Add(mgr manager.Manager, opts Options) error {
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		Watches(&clusterv1.ManagedCluster{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Or(
				predicate.NewPredicateFuncs(beingDetached), kube.OnChange(reachabilityChanged)))).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(clusterOfAddon),
			builder.WithPredicates(predicate.NewPredicateFuncs(beingRemoved))).
		Complete(&Reconciler{
			Client:   mgr.GetClient(),
			Live:     mgr.GetAPIReader(),
			Recorder: mgr.GetEventRecorder(ControllerName),
			Clock:    clock.RealClock{},
			Options:  opts,
		})
}

func beingRemoved(object client.Object) bool {
	return object.GetName() == contract.AddonName && !object.GetDeletionTimestamp().IsZero()
}

func beingDetached(object client.Object) bool {
	return !object.GetDeletionTimestamp().IsZero()
}

func reachabilityChanged(before, after *clusterv1.ManagedCluster) bool {
	const available = clusterv1.ManagedClusterConditionAvailable
	return kube.StatusOf(before.Status.Conditions, available) != kube.StatusOf(after.Status.Conditions, available)
}

func clusterOfAddon(_ context.Context, addon client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: addon.GetNamespace()}}}
}
