package inventory

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// recheckAfter is how soon a condition that could not be judged is looked at
// again; outcomes as they come are what normally ends the wait.
const recheckAfter = 5 * time.Second

// StatusReconciler keeps the condition ProfilesSynced on a cluster's addon. The
// request's name is the cluster.
type StatusReconciler struct {
	reader       client.Reader // caches
	writer       client.Client
	guard        Guard
	clock        clock.PassiveClock
	routes       routes
	outcomes     *outcomes
	expectations *kube.Expectations

	// started becomes true when the controller of the pairs runs, so that the
	// indexes are there and outcomes come.
	started *atomic.Bool
}

func newStatusReconciler(routes routes, writer client.Client, opts Options, started *atomic.Bool) *StatusReconciler {
	return &StatusReconciler{
		reader:       routes.reader,
		writer:       writer,
		guard:        opts.Guard,
		clock:        opts.Clock,
		routes:       routes,
		outcomes:     routes.outcomes,
		expectations: kube.NewExpectations(),
		started:      started,
	}
}

// allClusters leads from what concerns every cluster to every cluster that has
// the addon.
func (r *StatusReconciler) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	addons := &addonv1beta1.ManagedClusterAddOnList{}
	if err := r.reader.List(ctx, addons, uncopied); err != nil {
		log.FromContext(ctx).Error(err, "Listing addons")
	}
	requests := make([]reconcile.Request, 0, len(addons.Items))
	for i := range addons.Items {
		requests = append(requests, clusterOfAddon(ctx, &addons.Items[i])...)
	}
	return requests
}

// Reconcile writes the condition if it does not say what is so. While it cannot
// be known what is so, because pairs are still being looked at after a start,
// the condition stays.
func (r *StatusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := addonKey(req.Name)
	addon, err := get(ctx, r.reader, key, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil || addon == nil || addon.DeletionTimestamp != nil {
		return reconcile.Result{}, err
	}
	if wait := r.expectations.Wait(key, addon, r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	condition, err := r.condition(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if condition == nil {
		return reconcile.Result{RequeueAfter: recheckAfter}, nil
	}
	return reconcile.Result{}, r.apply(ctx, addon, *condition)
}

// condition returns what the condition is to say; nil means that it cannot be
// said yet.
func (r *StatusReconciler) condition(ctx context.Context, cluster string) (*metav1.Condition, error) {
	missing, err := unserved(ctx, r.reader, profileCRD)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		condition := blocked(contract.ReasonProfileAPIMissing, "The hub does not serve ClusterProfiles: the CustomResourceDefinition "+profileCRD+" is missing.")
		return &condition, nil
	}
	verdict, err := r.guard.Verdict(ctx)
	if err != nil {
		return nil, err
	}
	if !verdict.Allowed {
		condition := blocked(verdict.Reason, verdict.Message)
		return &condition, nil
	}
	if !r.started.Load() {
		return nil, nil
	}
	namespaces, err := r.routes.expectedNamespaces(ctx, cluster)
	if err != nil {
		return nil, err
	}
	byNamespace := make(map[string]outcome, len(namespaces))
	for _, namespace := range namespaces {
		out, ok := r.outcomes.get(types.NamespacedName{Namespace: namespace, Name: cluster})
		if !ok {
			return nil, nil
		}
		if out.nobodyAsks() {
			// Its profile is going. Named here, it would be one more write when it
			// has gone.
			continue
		}
		byNamespace[namespace] = out
	}
	condition := profilesSynced(byNamespace)
	return &condition, nil
}

// apply patches the one condition. That upstream's gate keeps profiles from
// being written is said in an event too, when it begins.
func (r *StatusReconciler) apply(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn, condition metav1.Condition) error {
	now := r.clock.Now()
	changed, err := kube.WriteCondition(ctx, r.writer, addon, addon.Status.Conditions, condition, client.FieldOwner(StatusControllerName), r.expectations, now)
	if err != nil || !changed {
		return err
	}
	if condition.Reason != contract.ReasonUpstreamGateOn && condition.Reason != contract.ReasonUpstreamGateUnknown {
		return nil
	}
	regarding := corev1.ObjectReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn",
		Namespace: addon.Namespace, Name: addon.Name, UID: addon.UID,
	}
	return emit(ctx, r.writer, regarding, note{eventType: corev1.EventTypeWarning, text: condition.Message}, condition.Reason, now)
}
