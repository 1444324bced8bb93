package selection

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// longestMoveOfCopies is how long copies of tokens stay while a cluster may be moving between slices.
const longestMoveOfCopies = kube.AbsenceCounts

// Observe reads a pair, the namespace and as its name the cluster, and applies the rule to
// it. Call Settle before acting on the result.
func (r *Rule) Observe(ctx context.Context, pair types.NamespacedName) (rule.Observation, rule.Result, error) {
	o, err := r.observe(ctx, pair)
	if err != nil {
		return rule.Observation{}, rule.Result{}, err
	}
	result := rule.Pair(o)
	if o.InInventory() {
		r.settling.installing.Over(pair)
	}
	if result.Answer != rule.Unknown && !result.ByPlacement && !result.ByAddon {
		r.settling.Present(pair)
	}
	return o, result, nil
}

// Settle returns the result on which to act, and how long to wait first; 0 means not at all.
// The caller must wait if the cluster has only just disappeared from the decisions of the
// namespace's Placements, or these are being written. acting says that the caller would
// create something because of a Yes or take something away because of a No. Then the result
// may change: Settle decides an absence from decisions, and that of the addon, again. The
// result becomes Unknown if slices cannot tell a cluster that moves from one that was
// removed, if a Placement has only just vanished or the manager has only just started, and if
// missing objects may have been deleted with their CRD or the cache may be older than this
// process, for which Settle reads live. If Again is set then, no event may come.
//
// Once Settle has returned 0 for an Unknown that rests on Placements, the routes enqueue
// the pair again when one of these changes. Only a controller that watches the routes may
// call it: that it runs proves that all watches have begun.
func (r *Rule) Settle(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result, acting bool,
) (rule.Result, time.Duration, error) {
	if acting {
		var wait time.Duration
		var err error
		if o, result, wait, err = r.settle(ctx, pair, o, result, rule.LongestMove); wait > 0 || err != nil {
			return result, wait, err
		}
	}
	left := r.settling.see(o.Placements, r.clock.Now())
	if acting && result.Answer != rule.Unknown {
		result, err := r.confirm(ctx, pair, o, result)
		return result, 0, err
	}
	switch {
	case len(result.Undecided) == 0:
		return result, 0, nil
	case left > 0:
		return result, left, nil
	}
	r.settling.await(pair, result.Undecided...)
	// An event between the observation and await found no waiting pair, so observe again.
	placements, err := r.observePlacements(ctx, pair)
	return result, r.settling.see(placements, r.clock.Now()), err
}

// Selected applies the rule to a pair as the caches are. withdrawing says that a No would
// take something away: then the answer is Unknown while Settle would delay or doubt the
// withdrawal. While the hub does not serve ClusterProfiles, the answer is never Yes; a No
// does not depend on them.
func (r *Rule) Selected(ctx context.Context, pair types.NamespacedName, withdrawing bool) (rule.Result, error) {
	if !r.prepared.Load() {
		return notReady, nil
	}
	o, result, err := r.Observe(ctx, pair)
	if err == nil && result.Answer != rule.Yes {
		// Callers that read this must learn of the decision, even if it is the one that was tracked
		// last. An event between the observation and this may have notified no subscriber, so observe again.
		undecided := len(result.Undecided) > 0
		r.settling.await(pair, result.Undecided...)
		if r.changes.doubt(pair, undecided) || undecided {
			o, result, err = r.Observe(ctx, pair)
		}
	}
	if err != nil {
		return rule.Result{}, err
	}
	if withdrawing || result.Answer == rule.Yes {
		var wait time.Duration
		if o, result, wait, err = r.settle(ctx, pair, o, result, longestMoveOfCopies); wait > 0 || err != nil {
			result.Answer, result.Again = rule.Unknown, wait
			return result, err
		}
	}
	switch {
	case !o.ProfileAPI && result.Answer != rule.No:
		return rule.Result{
			Why: "cannot be selected: the hub does not serve " + rule.ProfileCRD, Untrusted: true, Again: result.Again,
		}, nil
	case !withdrawing, result.Answer == rule.Yes:
		return result, nil
	case result.Answer == rule.Unknown:
		result.Again = kube.Sooner(result.Again, r.definitions.Left(CRDs()...))
		return result, nil
	}
	if result, err = r.confirm(ctx, pair, o, result); result.Answer != rule.No {
		// A pair without a profile may cause no event.
		result.Again = kube.Sooner(result.Again, watch.RestoreTime)
	}
	return result, err
}

// reads is how many kinds of live reads rule.Settle may ask for.
const reads = 2

// settle is rule.Settle with what is remembered about an absence, after another look at the cache once that has
// lasted, and with the live reads for which it asks. wait is how long to wait first; 0 means not at all.
func (r *Rule) settle(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result, longest time.Duration,
) (rule.Observation, rule.Result, time.Duration, error) {
	memory, err := r.remember(ctx, pair, o, result)
	if err == nil && memory.Settling == 0 && rule.IsUnchosen(o, result) {
		if o, result, err = r.Observe(ctx, pair); err == nil {
			memory, err = r.remember(ctx, pair, o, result)
		}
	}
	if err != nil {
		return o, result, 0, err
	}
	var live rule.Live
	for range 1 + reads {
		s := rule.Settle(o, result, memory, live, longest)
		var wait time.Duration
		switch {
		case s.ReadInstalls:
			live.Installs, wait, err = r.liveInstalls(ctx, pair.Name, memory.Uninstalled)
		case s.ReadSlices != nil:
			live.Slices, err = r.live.placements(ctx, s.ReadSlices, r.live.recent(memory.Absent))
		default:
			if s.IsFinal {
				r.settling.installing.Over(pair)
				r.settling.Present(pair)
			}
			return s.Observation, s.Result, s.Wait, nil
		}
		if wait > 0 || err != nil {
			return o, result, wait, err
		}
	}
	return o, result, settleTime, nil // it asked again for what it was given, which must not loop
}

// remember records what is absent for a pair, and returns what is remembered about it.
func (r *Rule) remember(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result,
) (rule.Memory, error) {
	if !rule.RestsOnAbsence(o, result) {
		return rule.Memory{}, nil
	}
	lost, installs, err := r.observeAbsence(ctx, pair, o, result)
	if err != nil {
		return rule.Memory{}, err
	}
	memory := r.settling.recall(pair, o, result, lost, r.clock.Now())
	memory.Installs = installs
	return memory, nil
}
