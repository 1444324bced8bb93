package conditions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// eventAction is the controller's action in its events.
const eventAction = "Report"

// Reconciler maintains the manager's conditions on a cluster's addon. The request's name is
// the cluster.
type Reconciler struct {
	reader       client.Reader // cache
	writer       client.Client
	clock        clock.PassiveClock
	sources      []Source
	expectations kube.Expectations
	held         kube.Debounce[held]
}

// held is a status that is held back, or was before it was written.
type held struct {
	cluster, conditionType string
	status                 metav1.ConditionStatus
}

// statuses are all that a condition may have.
var statuses = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}

func newReconciler(reader client.Reader, writer client.Client, opts Options) *Reconciler {
	return &Reconciler{reader: reader, writer: writer, clock: opts.Clock, sources: opts.Sources}
}

// Reconcile writes the conditions that differ.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := req.Name
	key := types.NamespacedName{Namespace: cluster, Name: contract.AddonName}
	addon, err := kube.Get(ctx, r.reader, key, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil {
		return reconcile.Result{}, err
	}
	if addon == nil || addon.DeletionTimestamp != nil {
		r.forget(cluster)
		return reconcile.Result{}, nil
	}
	now := r.clock.Now()
	if wait := r.expectations.Wait(key, addon, now); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	all, err := r.observe(ctx, cluster, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	reported := r.hold(cluster, contract.ConditionPropertiesPublished, reportOf(addon).heldBack(), now)
	write, again := decide(addon, all, reported, now)
	if len(write) == 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	switch err := r.apply(ctx, addon, write, now); {
	case apierrors.IsConflict(err):
		log.FromContext(ctx).V(1).Info("The addon has changed since the cache saw it", "reason", err.Error())
		r.expectations.Conflicted(addon, now)
		return reconcile.Result{RequeueAfter: delay}, nil
	case kube.IsGone(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("patching conditions: %w", err)
	}
	return reconcile.Result{RequeueAfter: again}, r.warn(ctx, addon, write, now)
}

// observe asks every source.
func (r *Reconciler) observe(ctx context.Context, cluster string, now time.Time) ([]wanted, error) {
	all := make([]wanted, 0, len(r.sources))
	for _, source := range r.sources {
		desired, err := source.Desired(ctx, cluster)
		if err != nil {
			return nil, fmt.Errorf("condition %s: %w", source.Type(), err)
		}
		all = append(all, r.hold(cluster, source.Type(), desired, now))
	}
	return all, nil
}

// hold returns what a condition must be, and records since when its status has been held back.
func (r *Reconciler) hold(cluster, conditionType string, desired *Desired, now time.Time) wanted {
	w := wanted{conditionType: conditionType, Desired: desired, since: now}
	isHeld := desired != nil && desired.HoldBack > 0
	for _, status := range statuses {
		if !isHeld || status != desired.Status {
			r.held.Over(held{cluster, conditionType, status})
		}
	}
	if isHeld {
		w.since = r.held.Since(held{cluster, conditionType, desired.Status}, now)
	}
	return w
}

func (r *Reconciler) forget(cluster string) {
	r.hold(cluster, contract.ConditionPropertiesPublished, nil, time.Time{})
	for _, source := range r.sources {
		r.hold(cluster, source.Type(), nil, time.Time{})
	}
}

// apply writes the conditions in one patch.
func (r *Reconciler) apply(
	ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn, write []wanted, now time.Time,
) error {
	var patch client.Patch
	var err error
	if len(addon.Status.Conditions) == 0 {
		patch, err = kube.MergePatch(addon.ResourceVersion, desiredFirst(write, now))
	} else {
		var data []byte
		data, err = json.Marshal(desiredOperations(addon, write, now))
		patch = client.RawPatch(types.JSONPatchType, data)
	}
	if err != nil {
		return err
	}
	written := &addonv1beta1.ManagedClusterAddOn{}
	written.Namespace, written.Name = addon.Namespace, addon.Name
	if err := r.writer.Status().Patch(ctx, written, patch, client.FieldOwner(ControllerName)); err != nil {
		return err
	}
	r.expectations.Wrote(written, now)
	return nil
}

// warn creates the events for the conditions that were written.
func (r *Reconciler) warn(
	ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn, written []wanted, now time.Time,
) error {
	regarding := corev1.ObjectReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn",
		Namespace: addon.Namespace, Name: addon.Name, UID: addon.UID,
	}
	for _, w := range written {
		before := meta.FindStatusCondition(addon.Status.Conditions, w.conditionType)
		if !w.Warn || before != nil && before.Reason == w.Reason {
			continue
		}
		event := kube.NewEvent(regarding, corev1.EventTypeWarning, w.Reason, eventAction, w.Message,
			ControllerName, ControllerName, now)
		if err := kube.CreateEvent(ctx, r.writer, event); err != nil {
			return err
		}
	}
	return nil
}
