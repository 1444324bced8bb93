package inventory

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// isReferenced asks whether something refers to a profile that cannot be referred to.
func (r *Reconciler) isReferenced(ctx context.Context, o observed) bool {
	if r.references == nil {
		return false
	}
	if o.Profile != nil && selection.IsOurs(o.Profile) && o.Profile.DeletionTimestamp == nil {
		return false
	}
	return r.references.Refers(ctx, o.pair)
}

// releaseFirst has the references to a profile go before the profile does, and returns how
// long to wait for that. It does not wait for longer than referenceWait in all, and not for
// a profile that somebody else deletes.
func (r *Reconciler) releaseFirst(ctx context.Context, o observed, answer selection.Answer) time.Duration {
	if r.references == nil {
		return 0
	}
	switch nextStep(o, answer) {
	case remove:
		if r.references.Withdraw(ctx, o.pair) || r.leaving.Failed(o.pair, r.clock.Now()) {
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

// admit lets a pair's profile be referred to if it is whole and must be there. One that is
// not whole any more, but there, may still be: its access may come back. One that is
// missing and cannot be created for half a minute may not.
func (r *Reconciler) admit(ctx context.Context, o observed, answer selection.Answer, err error) {
	if r.references == nil {
		return
	}
	switch {
	case o.Profile != nil || answer != selection.Yes:
		r.missing.Over(o.pair)
	case err != nil && o.referenced && r.missing.Failed(o.pair, r.clock.Now()):
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
