package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
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
	expected kube.Expectations  // of claims
}

// Reconcile observes property and claim, decides and applies.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seen, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wait := r.expected.Wait(req.NamespacedName, kube.ObjectOrNil(seen.claim), r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if seen.foreign() || isAsDesired(desiredClaim(seen, r.api.Version), seen.claim) {
		return reconcile.Result{}, nil
	}
	// Something is to be written. The caches of properties and of claims may differ in age, and be older
	// than the process, so the property is read again: neither an old value nor one that its owner
	// has withdrawn may come back, nor may a claim go that it still needs.
	live, err := property.Live(ctx, r.live, r.api, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	result := reconcile.Result{}
	if !ptr.Equal(live, seen.property) {
		// Look again, because no event follows if the property becomes what an old cache shows: after a
		// restored spoke has lost an edit, which is then repeated.
		result.RequeueAfter = kube.StaleAfter
	}
	seen.property = live
	want := desiredClaim(seen, r.api.Version)
	switch {
	case isAsDesired(want, seen.claim):
	case want != nil && seen.claim == nil:
		err = r.create(ctx, want)
	case want != nil:
		err = r.patch(ctx, want, seen.claim)
	default:
		err = r.prune(ctx, seen.claim)
	}
	if fight := (&kube.ContestedError{}); errors.As(err, &fight) {
		return reconcile.Result{RequeueAfter: fight.Wait}, nil
	}
	return result, err
}

// observe reads from the caches. The claim must not be changed.
func (r *Reconciler) observe(ctx context.Context, name string) (seen observed, err error) {
	seen.reserved = r.reserved
	key := client.ObjectKey{Name: name}
	if r.api.Served() {
		obj, err := kube.Get(ctx, r.cached, key, property.New(r.api.Version))
		if err != nil {
			return seen, err
		}
		if obj != nil {
			seen.property = ptr.To(property.Read(obj))
		}
	}
	seen.claim, err = kube.Get(ctx, r.cached, key, &clusterv1alpha1.ClusterClaim{})
	return seen, err
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
func (r *Reconciler) prune(ctx context.Context, claim *clusterv1alpha1.ClusterClaim) error {
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
			r.expected.Conflicted(w.claim, r.clock.Now())
		}
		return fmt.Errorf("ClusterClaim %s could not be %s: %w", w.claim.Name, w.what, err)
	}
	after := w.claim.ResourceVersion
	if w.repair == kube.Remove {
		after = ""
		r.expected.Deleted(w.claim, r.clock.Now())
	} else {
		r.expected.Wrote(w.claim, r.clock.Now())
	}
	r.brake.Wrote(w.claim.Name, w.repair, w.before, after, r.clock.Now())
	log.FromContext(ctx).V(2).Info("Wrote ClusterClaim", "claim", w.claim.Name, "outcome", w.what)
	return nil
}
