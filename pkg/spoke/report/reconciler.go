package report

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// hubTimeout limits one write to the hub.
const hubTimeout = 30 * time.Second

// Reconciler keeps the condition up to date.
type Reconciler struct {
	situation Situation
	addonUID  types.UID
	metrics   *Metrics
	clock     clock.PassiveClock

	awaited  awaited
	expected kube.Expectations // of the addon

	spoke client.Reader
	hub   client.Reader
	// status writes the hub's status subresources.
	status client.SubResourceWriter
}

// Reconcile observes addon, properties and claims, and reports.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := r.hub.Get(ctx, req.NamespacedName, addon); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if addon.UID != r.addonUID {
		return reconcile.Result{}, nil
	}
	if wait := r.expected.Wait(req.NamespacedName, addon, r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	seen, err := r.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	late := r.awaited.count(&seen, r.clock.Now())
	r.metrics.show(count(seen))
	if err := r.apply(ctx, addon, desiredCondition(seen)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: late}, nil
}

func (r *Reconciler) observe(ctx context.Context) (observed, error) {
	seen := observed{Situation: r.situation}
	if seen.Stopped || !seen.API.Served() {
		return seen, nil
	}
	return seen, seen.read(ctx, r.spoke)
}

// read adds the properties and claims of the spoke.
func (o *observed) read(ctx context.Context, spoke client.Reader) error {
	properties := property.NewList(o.API.Version)
	if err := spoke.List(ctx, properties, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ClusterProperties: %w", err)
	}
	for i := range properties.Items {
		o.properties = append(o.properties, property.Read(&properties.Items[i]))
	}
	claims := &clusterv1alpha1.ClusterClaimList{}
	if err := spoke.List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ClusterClaims: %w", err)
	}
	for i := range claims.Items {
		o.claims = append(o.claims, readClaim(&claims.Items[i]))
	}
	return nil
}

func (r *Reconciler) apply(
	ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn, condition metav1.Condition,
) error {
	condition.LastTransitionTime = metav1.NewTime(r.clock.Now())
	patch, err := kube.ConditionPatch(addon.ResourceVersion, addon.Status.Conditions, condition)
	if err != nil || patch == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	if err := r.status.Patch(ctx, addon, patch); err != nil {
		if apierrors.IsConflict(err) {
			r.expected.Conflicted(addon, r.clock.Now())
		}
		return fmt.Errorf("reporting on the hub: %w", err)
	}
	r.expected.Wrote(addon, r.clock.Now())
	return nil
}
