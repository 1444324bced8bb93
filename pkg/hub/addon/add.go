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
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
)

// ControllerName is the name of the controller that stops waiting for spokes that do not
// come back, or are not cleaned up.
const ControllerName = "hub.cleanup-timeout"

// Add adds addon-framework, which runs on the elected leader, and the controllers
// hub.csr-approval and hub.cleanup-timeout. The manager's cache must be configured by
// CacheOptions and hold the deletion times of the ManagedClusterAddOns and ManagedClusters,
// and the ManagedClusters' spec.hubAcceptsClient and condition Available. The returned
// source is that of the condition ConfigurationApplied.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (conditions.Source, error) {
	outcomes := newOutcomes(mgr.GetCache())
	err := mgr.Add(&framework{
		cfg: mgr.GetConfig(), opts: opts, shared: mgr.GetCache(), client: mgr.GetClient(), live: mgr.GetAPIReader(),
		outcomes: outcomes,
	})
	if err != nil {
		return nil, err
	}
	if err := addApprover(ctx, mgr); err != nil {
		return nil, err
	}
	return outcomes, builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		Watches(&clusterv1.ManagedCluster{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Or(predicate.NewPredicateFuncs(beingDetached), reachabilityChanged()))).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(clusterOfAddon),
			builder.WithPredicates(predicate.NewPredicateFuncs(beingRemoved))).
		Complete(&Reconciler{
			Client:   mgr.GetClient(),
			Live:     mgr.GetAPIReader(),
			Recorder: mgr.GetEventRecorder(ControllerName),
			Clock:    clock.RealClock{},
			hosting:  opts.HostedAgents,
			limits:   limits{unreachable: opts.CleanupTimeout, job: opts.CleanupJobTimeout},
		})
}

// beingRemoved reports whether an object is this addon and is being deleted.
func beingRemoved(object client.Object) bool {
	return object.GetName() == contract.AddonName && !object.GetDeletionTimestamp().IsZero()
}

// beingDetached reports whether a cluster is being deleted from the hub.
func beingDetached(object client.Object) bool {
	return !object.GetDeletionTimestamp().IsZero()
}

// reachabilityChanged passes events that may change whether a cluster is reachable: the
// cluster was added or deleted, or its Available condition changed.
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

// clusterOfAddon maps an addon to its cluster.
func clusterOfAddon(_ context.Context, addon client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: addon.GetNamespace()}}}
}
