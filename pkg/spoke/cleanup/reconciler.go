package cleanup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconciler is the agent's side: it stops publishing and acknowledges that.
type Reconciler struct {
	addon  types.UID
	stop   func(context.Context) error
	reader client.Reader
	writer client.Writer
}

// Reconcile reads the marker and, if it is addressed to this agent, stops
// publishing and acknowledges.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	marker := &corev1.ConfigMap{}
	if err := r.reader.Get(ctx, req.NamespacedName, marker); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !addressed(marker, r.addon) {
		return reconcile.Result{}, nil
	}
	if err := r.stop(ctx); err != nil {
		return reconcile.Result{}, fmt.Errorf("stopping publishing: %w", err)
	}
	if acknowledged(marker, r.addon) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
	if err := r.writer.Patch(ctx, withAcknowledgement(marker, r.addon), patch); err != nil {
		return reconcile.Result{}, fmt.Errorf("acknowledging in ConfigMap %s: %w", req.NamespacedName, err)
	}
	log.FromContext(ctx).Info("Stopped publishing: the addon is being removed")
	return reconcile.Result{}, nil
}
