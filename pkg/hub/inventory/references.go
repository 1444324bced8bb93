package inventory

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

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
	return r.references.Refer(ctx, o.pair) == selection.Yes
}

// releaseFirst removes the references to a profile before the profile itself, and returns
// how long to wait for that. It waits no longer than referenceWait in all.
func (r *Reconciler) releaseFirst(ctx context.Context, o observed, next step) time.Duration {
	if r.references == nil {
		return 0
	}
	if next != remove {
		r.leaving.Over(o.pair)
		return 0
	}
	r.references.Allow(ctx, o.pair, selection.No)
	if r.references.Refer(ctx, o.pair) == selection.No ||
		r.leaving.Lasted(o.pair, referenceWait, r.clock.Now()) {
		return 0
	}
	return referenceWait
}

// allowReferences records whether a pair's profile may be referred to after a reconciliation
// that found the profile before, and ended with an error or nil. A missing profile that cannot
// be created for half a minute may not.
func (r *Reconciler) allowReferences(
	ctx context.Context, o observed, before *inventoryv1alpha1.ClusterProfile, answer selection.Answer, next step, err error,
) {
	if r.references == nil {
		return
	}
	if held := (*kube.HeldBackError)(nil); errors.As(err, &held) && o.Profile != nil {
		err = nil // what waits is nothing that makes a profile complete
	}
	missing := next == create && o.Profile == nil && err != nil && o.referenced
	if !missing {
		r.missing.Over(o.pair)
	}
	may := mayBeReferredTo(o, before, answer, next, err)
	if missing && r.missing.Lasted(o.pair, kube.LastingAfter, r.clock.Now()) {
		may = selection.No
	}
	r.references.Allow(ctx, o.pair, may)
}

// mayBeReferredTo returns whether a profile may be referred to: Yes if it must exist and is
// complete, which one whose creation or adoption has failed halfway is not.
func mayBeReferredTo(
	o observed, before *inventoryv1alpha1.ClusterProfile, answer selection.Answer, next step, err error,
) selection.Answer {
	was := o
	was.Profile = before
	switch {
	case next == remove, next == release:
		return selection.No
	case answer == selection.Yes && isWhole(o) && (err == nil || isWhole(was)):
		return selection.Yes
	default:
		return selection.Unknown
	}
}

// holdReferences leaves references as they are: nothing is known about the profile now.
func (r *Reconciler) holdReferences(ctx context.Context, pair types.NamespacedName) {
	if r.references != nil {
		r.references.Allow(ctx, pair, selection.Unknown)
		r.leaving.Over(pair)
	}
}
