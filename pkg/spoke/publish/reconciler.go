package publish

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// writeTimeout limits a write, which continues when the controller is stopped.
const writeTimeout = 15 * time.Second

// Reconciler keeps each claim in sync with the property of its name.
type Reconciler struct {
	api    property.API
	cached client.Reader
	live   client.Reader
	writer client.Writer
}

var _ reconcile.Reconciler = &Reconciler{}

// Reconcile observes property and claim, decides and applies.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seen, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if seen.foreign() {
		return reconcile.Result{}, nil
	}
	want := desiredClaim(seen, r.api.Version)
	switch {
	case want != nil && seen.claim == nil:
		err = r.create(ctx, want)
	case want != nil && !equality.Semantic.DeepEqual(want, seen.claim):
		err = r.patch(ctx, want, seen.claim)
	case want == nil && seen.claim != nil:
		err = r.prune(ctx, seen)
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) observe(ctx context.Context, name string) (observed, error) {
	var seen observed
	key := client.ObjectKey{Name: name}
	if r.api.Served() {
		obj := property.New(r.api.Version)
		err := r.cached.Get(ctx, key, obj)
		if client.IgnoreNotFound(err) != nil {
			return seen, fmt.Errorf("reading ClusterProperty %s: %w", name, err)
		}
		if err == nil {
			read := property.Read(obj)
			seen.property = &read
		}
	}
	claim := &clusterv1alpha1.ClusterClaim{}
	err := r.cached.Get(ctx, key, claim)
	if client.IgnoreNotFound(err) != nil {
		return seen, fmt.Errorf("reading ClusterClaim %s: %w", name, err)
	}
	if err == nil {
		seen.claim = claim
	}
	return seen, nil
}

func (r *Reconciler) create(ctx context.Context, claim *clusterv1alpha1.ClusterClaim) error {
	return write(ctx, "created", claim, func(ctx context.Context) error {
		return r.writer.Create(ctx, claim)
	})
}

func (r *Reconciler) patch(ctx context.Context, want, current *clusterv1alpha1.ClusterClaim) error {
	return write(ctx, "changed", want, func(ctx context.Context) error {
		return r.writer.Patch(ctx, want, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}))
	})
}

// prune deletes a claim of ours whose property is gone or must not be published.
// The optimistic lock protects a claim that somebody took over meanwhile.
func (r *Reconciler) prune(ctx context.Context, seen observed) error {
	claim := seen.claim
	if seen.property == nil {
		gone, err := property.Gone(ctx, r.live, r.api, claim.Name)
		if err != nil || !gone {
			return err
		}
	}
	return write(ctx, "deleted", claim, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.writer.Delete(ctx, claim,
			client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}))
	})
}

// write does not start a write after ctx has ended, and does not cancel one that
// has started: a canceled request may still take effect.
func write(
	ctx context.Context, what string, claim *clusterv1alpha1.ClusterClaim, do func(context.Context) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := do(finishing); err != nil {
		return fmt.Errorf("ClusterClaim %s could not be %s: %w", claim.Name, what, err)
	}
	log.FromContext(ctx).V(2).Info("ClusterClaim "+what, "claim", claim.Name)
	return nil
}
