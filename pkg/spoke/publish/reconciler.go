package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// writeTimeout limits a write, which continues when the controller is stopped.
const writeTimeout = 15 * time.Second

// Reconciler keeps each claim in sync with the property of its name.
type Reconciler struct {
	api      property.API
	reserved property.Reserved
	cached   client.Reader
	live     client.Reader
	writer   client.Writer
	clock    clock.PassiveClock
	brake    kube.Brake[string] // by name
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
	if fight := (&kube.ContestedError{}); errors.As(err, &fight) {
		return reconcile.Result{RequeueAfter: fight.Wait}, nil
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) observe(ctx context.Context, name string) (observed, error) {
	seen := observed{reserved: r.reserved}
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
	return r.write(ctx, change{what: "created", claim: claim}, func(ctx context.Context) error {
		return r.writer.Create(ctx, claim)
	})
}

func (r *Reconciler) patch(ctx context.Context, want, current *clusterv1alpha1.ClusterClaim) error {
	changed := change{what: "changed", claim: want, before: current.ResourceVersion}
	return r.write(ctx, changed, func(ctx context.Context) error {
		return r.writer.Patch(ctx, want, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}))
	})
}

// prune deletes a claim of ours whose property is gone or must not be published. The
// optimistic lock protects a claim that another client has taken over meanwhile.
func (r *Reconciler) prune(ctx context.Context, seen observed) error {
	claim := seen.claim
	if seen.property == nil {
		gone, err := property.Gone(ctx, r.live, r.api, claim.Name)
		if err != nil || !gone {
			return err
		}
	}
	removal := change{what: "deleted", repair: kube.Remove, claim: claim, before: claim.ResourceVersion}
	return r.write(ctx, removal, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.writer.Delete(ctx, claim,
			client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}))
	})
}

// change is a write of a claim.
type change struct {
	what   string
	repair kube.Write
	claim  *clusterv1alpha1.ClusterClaim
	before string // the version to change; empty if there is no claim
}

// write does not start a write after ctx has ended, and does not cancel one that has
// started: a canceled request may still take effect. It also pauses before repairing a
// claim that another client keeps changing.
func (r *Reconciler) write(ctx context.Context, w change, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.brake.Check(w.claim.Name, w.repair, w.before, r.clock.Now()); err != nil {
		return err
	}
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := do(finishing); err != nil {
		if apierrors.IsConflict(err) {
			r.brake.Lost(w.claim.Name, w.repair, w.before, r.clock.Now())
		}
		return fmt.Errorf("ClusterClaim %s could not be %s: %w", w.claim.Name, w.what, err)
	}
	after := w.claim.ResourceVersion
	if w.repair == kube.Remove {
		after = ""
	}
	r.brake.Wrote(w.claim.Name, w.repair, w.before, after, r.clock.Now())
	log.FromContext(ctx).V(2).Info("Wrote ClusterClaim", "claim", w.claim.Name, "outcome", w.what)
	return nil
}
