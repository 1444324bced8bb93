package addon

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// ControllerName is the name of the controller that ends the removal of an
// addon whose spoke does not come back.
const ControllerName = "hub.cleanup-timeout"

// Add adds addon-framework, which runs on the elected leader, and the controllers
// hub.cleanup-timeout and hub.detach. The manager's cache must hold the deletion times of the
// ManagedClusterAddOns and the Available condition of the ManagedClusters.
func Add(mgr manager.Manager, opts Options) error {
	if err := mgr.Add(&framework{cfg: mgr.GetConfig(), opts: opts, client: mgr.GetClient(), live: mgr.GetAPIReader()}); err != nil {
		return err
	}
	err := builder.ControllerManagedBy(mgr).
		Named(DetachControllerName).
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.NewPredicateFuncs(beingDetached))).
		Complete(&DetachReconciler{
			Client:  mgr.GetClient(),
			Live:    mgr.GetAPIReader(),
			Clock:   clock.RealClock{},
			Timeout: opts.CleanupTimeout,
		})
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		For(&addonv1beta1.ManagedClusterAddOn{}, builder.WithPredicates(predicate.NewPredicateFuncs(beingRemoved))).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(addonOfCluster), builder.WithPredicates(reachabilityChanged())).
		Complete(&Reconciler{
			Client:   mgr.GetClient(),
			Live:     mgr.GetAPIReader(),
			Recorder: mgr.GetEventRecorder(ControllerName),
			Clock:    clock.RealClock{},
			Timeout:  opts.CleanupTimeout,
		})
}

// beingRemoved is true for this addon on a cluster when it waits for its
// clean-up.
func beingRemoved(object client.Object) bool {
	return object.GetName() == contract.AddonName && !object.GetDeletionTimestamp().IsZero()
}

// beingDetached is true for a cluster that is being deleted from the hub.
func beingDetached(object client.Object) bool {
	return !object.GetDeletionTimestamp().IsZero()
}

// reachabilityChanged is true when a cluster's Available condition changed, or
// the cluster came or went.
func reachabilityChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return availability(e.ObjectOld) != availability(e.ObjectNew)
		},
	}
}

func availability(object client.Object) string {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok {
		return ""
	}
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if condition == nil {
		return ""
	}
	return string(condition.Status)
}

// addonOfCluster is the route from a cluster to its addon.
func addonOfCluster(_ context.Context, cluster client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.GetName(), Name: contract.AddonName}}}
}
