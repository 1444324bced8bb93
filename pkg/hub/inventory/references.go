package inventory

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// isReferenced reports whether something refers to a profile that must not be referred to.
func (r *Reconciler) isReferenced(ctx context.Context, o profiles.Observed) bool {
	if r.opts.References == nil {
		return false
	}
	if o.Profile != nil && selection.IsOurs(o.Profile) && o.Profile.DeletionTimestamp == nil {
		return false
	}
	return r.opts.References.Refer(ctx, o.Pair) == selection.Yes
}

// releaseFirst removes the references to a profile before the profile itself, and returns
// how long to wait for that. It waits no longer than referenceWait in all. A profile that is to be
// created gets no new references until it is complete.
func (r *Reconciler) releaseFirst(ctx context.Context, o profiles.Observed, next profiles.Step) time.Duration {
	if r.opts.References == nil {
		return 0
	}
	if next == profiles.Create {
		// It may have been complete before it disappeared.
		r.opts.References.Allow(ctx, o.Pair, selection.Unknown)
	}
	if next != profiles.Remove {
		r.leaving.Over(o.Pair)
		return 0
	}
	r.opts.References.Allow(ctx, o.Pair, selection.No)
	if r.opts.References.Refer(ctx, o.Pair) == selection.No ||
		r.leaving.Lasted(o.Pair, referenceWait, r.opts.Clock.Now()) {
		return 0
	}
	return referenceWait
}

// allowReferences records whether a pair's profile may be referred to after a step. A missing
// profile that cannot be created for half a minute may not.
func (r *Reconciler) allowReferences(ctx context.Context, o profiles.Observed, t taken) {
	if r.opts.References == nil {
		return
	}
	if held := (*kube.HeldBackError)(nil); errors.As(t.err, &held) && o.Profile != nil {
		t.err = nil // what waits is nothing that makes a profile complete
	}
	missing := t.next == profiles.Create && o.Profile == nil && t.err != nil && o.Referenced
	if !missing {
		r.missing.Over(o.Pair)
	}
	may := mayBeReferredTo(o, t)
	if missing && r.missing.Lasted(o.Pair, kube.LastingAfter, r.opts.Clock.Now()) {
		may = selection.No
	}
	r.opts.References.Allow(ctx, o.Pair, may)
}

// mayBeReferredTo returns whether a profile may be referred to: Yes if it must exist and is
// complete, which one whose creation or adoption has failed halfway is not.
func mayBeReferredTo(o profiles.Observed, t taken) selection.Answer {
	was := o
	was.Profile = t.before
	switch {
	case t.next == profiles.Remove, t.next == profiles.Release:
		return selection.No
	case o.Selected.Answer == selection.Yes && profiles.IsWhole(o) && (t.err == nil || profiles.IsWhole(was)):
		return selection.Yes
	default:
		return selection.Unknown
	}
}

// holdReferences leaves references as they are: nothing is known about the profile now.
func (r *Reconciler) holdReferences(ctx context.Context, pair types.NamespacedName) {
	if r.opts.References != nil {
		r.opts.References.Allow(ctx, pair, selection.Unknown)
		r.leaving.Over(pair)
	}
}
