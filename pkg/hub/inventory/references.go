package inventory

import (
	"context"
	"errors"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// isOrphaned reports whether something refers to a profile that is missing and must be.
func (r *Reconciler) isOrphaned(ctx context.Context, o profiles.Observed, answer selection.Answer) bool {
	return r.opts.References != nil && o.Profile == nil && answer == selection.No &&
		!profiles.IsTerminating(o.Namespace) && r.opts.References.Refer(ctx, o.Pair) == selection.Yes
}

// releaseFirst lets package decisions remove the references to a profile before the profile itself,
// and returns how long to wait for that. It waits no longer than referenceWait in all, and looks again soon while it
// is not known what refers to it. A profile that is to be created gets no new references until it is
// complete.
func (r *Reconciler) releaseFirst(ctx context.Context, o profiles.Observed, next profiles.Step) time.Duration {
	switch {
	case r.opts.References == nil:
	case next == profiles.Create && r.opts.Rule.Referable(o.Pair) == selection.Yes: // it has disappeared
		r.opts.Rule.AllowReferences(o.Pair, selection.Unknown)
	case next == profiles.Remove:
		r.opts.Rule.AllowReferences(o.Pair, selection.No)
		switch r.opts.References.Refer(ctx, o.Pair) {
		case selection.Yes:
			return r.leaving.Left(o.Pair, referenceWait, r.opts.Clock.Now())
		case selection.Unknown:
			return min(selection.LagRecheck, r.leaving.Left(o.Pair, referenceWait, r.opts.Clock.Now()))
		case selection.No:
		}
	}
	return 0
}

// allowReferences records whether a pair's profile may be referred to after a step. A missing
// profile that cannot be created for half a minute may not.
func (r *Reconciler) allowReferences(o profiles.Observed, t taken) {
	if r.opts.References == nil {
		return
	}
	if t.next != profiles.Remove {
		r.leaving.Over(o.Pair)
	}
	if held := (*kube.HeldBackError)(nil); errors.As(t.err, &held) && held.Every > 0 && o.Profile != nil {
		t.err = nil // what waits for the budget is nothing that makes a profile complete
	}
	may := mayBeReferredTo(o, t, r.opts.Rule.Referable(o.Pair))
	if t.next != profiles.Create || o.Profile != nil {
		r.missing.Over(o.Pair)
	} else if r.missing.Lasted(o.Pair, kube.LastingAfter, r.opts.Clock.Now()) {
		may = selection.No
	}
	r.opts.Rule.AllowReferences(o.Pair, may)
}

// mayBeReferredTo returns whether a profile may be referred to: Yes if it must exist and is
// complete, which one whose creation or adoption has failed halfway is not, unless it was before. No if
// it must go, is gone or another manager's. While this addon does not maintain profiles, references stay.
func mayBeReferredTo(o profiles.Observed, t taken, before selection.Answer) selection.Answer {
	switch {
	case t.next == profiles.Refrain, t.next == profiles.UpdateAccess:
		return selection.Unknown
	case t.next == profiles.Remove, o.Orphaned && o.Selected.Answer == selection.No,
		profiles.IsLost(o.Profile) && !profiles.IsTerminating(o.Namespace):
		return selection.No
	case o.Selected.Answer == selection.Yes && profiles.IsWhole(o) && (t.err == nil || before == selection.Yes):
		return selection.Yes
	default:
		return selection.Unknown
	}
}
