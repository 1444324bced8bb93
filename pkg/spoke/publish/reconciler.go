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
	if want := desiredClaim(seen, r.api.Version); !isAsDesired(want, seen.claim) {
		err = r.write(ctx, seen.claim, want)
	}
	if contention := (&kube.ContestedError{}); errors.As(err, &contention) {
		return reconcile.Result{RequeueAfter: contention.Wait}, nil
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

// write creates, changes or deletes a claim: current is nil if there is none, and want is nil if there must be none,
// because the property is gone or must not be published. It does not start a write after ctx has ended, and does not
// cancel one that has started: a canceled request may still take effect. It also pauses before repairing a claim that
// another client keeps changing.
func (r *Reconciler) write(ctx context.Context, current, want *clusterv1alpha1.ClusterClaim) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	claim, kind, before := want, kube.Rewrite, ""
	if current != nil {
		before = current.ResourceVersion
	}
	if want == nil {
		claim, kind = current, kube.Remove
	}
	if err := r.brake.Check(claim.Name, kind, before, r.clock.Now()); err != nil {
		return err
	}
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	what, err := r.send(finishing, current, want)
	if err != nil {
		if apierrors.IsConflict(err) {
			r.brake.Lost(claim.Name, kind, before, r.clock.Now())
			r.expected.Conflicted(claim, r.clock.Now())
		}
		return fmt.Errorf("ClusterClaim %s could not be %s: %w", claim.Name, what, err)
	}
	after := ""
	if want == nil {
		r.expected.Deleted(claim, r.clock.Now())
	} else {
		after = want.ResourceVersion
		r.expected.Wrote(claim, r.clock.Now())
	}
	r.brake.Wrote(claim.Name, kind, before, after, r.clock.Now())
	log.FromContext(ctx).V(2).Info("Wrote ClusterClaim", "claim", claim.Name, "outcome", what)
	return nil
}

// send sends the request of a write, whose optimistic lock protects a claim that another client has taken over
// meanwhile.
func (r *Reconciler) send(ctx context.Context, current, want *clusterv1alpha1.ClusterClaim) (what string, err error) {
	switch {
	case current == nil:
		return "created", r.writer.Create(ctx, want)
	case want == nil:
		return "deleted", client.IgnoreNotFound(r.writer.Delete(ctx, current,
			client.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion}))
	default:
		lock := client.MergeFromWithOptimisticLock{}
		return "changed", r.writer.Patch(ctx, want, client.MergeFromWithOptions(current, lock))
	}
}
