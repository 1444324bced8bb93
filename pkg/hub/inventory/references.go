package inventory

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// isReferenced reports whether something refers to a profile that must not be referred to.
func (r *Reconciler) isReferenced(ctx context.Context, o observed) bool {
	if r.references == nil {
		return false
	}
	if o.Profile != nil && selection.IsOurs(o.Profile) && o.Profile.DeletionTimestamp == nil {
		return false
	}
	return r.references.Refers(ctx, o.pair)
}

// releaseFirst removes the references to a profile before the profile itself, and returns
// how long to wait for that. It waits no longer than referenceWait in all, and not for a
// profile that another client deletes.
func (r *Reconciler) releaseFirst(ctx context.Context, o observed, answer selection.Answer) time.Duration {
	if r.references == nil {
		return 0
	}
	switch nextStep(o, answer) {
	case remove:
		if r.references.Withdraw(ctx, o.pair) || r.leaving.Lasted(o.pair, referenceWait, r.clock.Now()) {
			return 0
		}
		return referenceWait
	case release:
		r.references.Withdraw(ctx, o.pair)
	default:
		ours := o.Profile != nil && selection.IsOurs(o.Profile) && o.Profile.DeletionTimestamp == nil
		switch {
		case !ours || isTerminating(o.Namespace):
			r.references.Forget(o.pair)
		case answer != selection.No:
			r.references.Keep(o.pair)
		}
	}
	r.leaving.Over(o.pair)
	return 0
}

// admit allows references to a pair's profile if it is complete and must exist. An existing
// profile that is no longer complete may keep its references: its access may come back. A
// missing profile that cannot be created for half a minute may not.
func (r *Reconciler) admit(ctx context.Context, o observed, answer selection.Answer, err error) {
	if r.references == nil {
		return
	}
	if held := (*kube.HeldBackError)(nil); errors.As(err, &held) && o.Profile != nil {
		err = nil // what waits is nothing that makes a profile complete
	}
	switch {
	case o.Profile != nil || answer != selection.Yes:
		r.missing.Over(o.pair)
	case err != nil && o.referenced && r.missing.Lasted(o.pair, kube.LastingAfter, r.clock.Now()):
		r.references.Withdraw(ctx, o.pair)
	}
	if err == nil && answer == selection.Yes && isWhole(o) {
		r.references.Admit(ctx, o.pair)
	}
}

func (r *Reconciler) holdReferences(pair types.NamespacedName) {
	if r.references != nil {
		r.references.Hold(pair)
		r.leaving.Over(pair)
	}
}
