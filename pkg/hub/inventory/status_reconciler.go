package inventory

import (
	"context"
	"fmt"
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
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// recheckAfter is how soon to look again at a condition that is not known yet.
// Normally an outcome that comes ends the wait.
const recheckAfter = 5 * time.Second

// StatusReconciler keeps the condition ProfilesSynced on a cluster's addon. The
// request's name is the cluster.
type StatusReconciler struct {
	reader       client.Reader // caches
	writer       client.Client
	rule         *selection.Rule
	guard        Guard
	clock        clock.PassiveClock
	routes       selection.Routes
	outcomes     *outcomes
	expectations *kube.Expectations
}

func newStatusReconciler(
	reader client.Reader, writer client.Client, opts Options, routes selection.Routes, outcomes *outcomes,
) *StatusReconciler {
	return &StatusReconciler{
		reader:       reader,
		writer:       writer,
		rule:         opts.Rule,
		guard:        opts.Guard,
		clock:        opts.Clock,
		routes:       routes,
		outcomes:     outcomes,
		expectations: kube.NewExpectations(),
	}
}

// allClusters leads from what concerns every cluster to every cluster that has
// the addon.
func (r *StatusReconciler) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	addons := &addonv1beta1.ManagedClusterAddOnList{}
	if err := r.reader.List(ctx, addons, kube.Uncopied); err != nil {
		log.FromContext(ctx).Error(err, "Listing addons")
	}
	requests := make([]reconcile.Request, 0, len(addons.Items))
	for i := range addons.Items {
		requests = append(requests, clusterOfAddon(ctx, &addons.Items[i])...)
	}
	return requests
}

// Reconcile writes the condition if it has changed. While it is unknown, because
// pairs are still being looked at after a start, the condition stays.
func (r *StatusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := types.NamespacedName{Namespace: req.Name, Name: contract.AddonName}
	addon, err := kube.Get(ctx, r.reader, key, &addonv1beta1.ManagedClusterAddOn{})
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

// condition returns what the condition must say, or nil if that is not known yet.
func (r *StatusReconciler) condition(ctx context.Context, cluster string) (*metav1.Condition, error) {
	served, err := kube.IsServed(ctx, r.reader, selection.ProfileCRD)
	if err != nil {
		return nil, err
	}
	if !served {
		const format = "The hub does not serve ClusterProfiles: the CustomResourceDefinition %s is missing."
		condition := blocked(contract.ReasonProfileAPIMissing, fmt.Sprintf(format, selection.ProfileCRD))
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
	if !r.rule.Ready() {
		return nil, nil
	}
	namespaces, err := r.routes.ExpectedNamespaces(ctx, cluster)
	if err != nil {
		return nil, err
	}
	byNamespace := make(map[string]outcome, len(namespaces))
	for _, namespace := range namespaces {
		out, ok := r.outcomes.get(types.NamespacedName{Namespace: namespace, Name: cluster})
		if !ok {
			return nil, nil
		}
		if out.isUnexpected() {
			// Its profile is being deleted. To name it would cost one more write when
			// it is gone.
			continue
		}
		byNamespace[namespace] = out
	}
	condition := profilesSynced(byNamespace)
	return &condition, nil
}

// apply patches the one condition. When upstream's gate begins to forbid writing
// profiles, it creates an event too.
func (r *StatusReconciler) apply(
	ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn, condition metav1.Condition,
) error {
	now, owner, conditions := r.clock.Now(), client.FieldOwner(StatusControllerName), addon.Status.Conditions
	changed, err := kube.WriteCondition(ctx, r.writer, addon, conditions, condition, owner, r.expectations, now)
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
	warning := notice{eventType: corev1.EventTypeWarning, text: condition.Message}
	return createEvent(ctx, r.writer, regarding, warning, condition.Reason, now)
}
