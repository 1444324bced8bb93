package selection

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// longestMoveOfCopies is how long copies of tokens stay while a cluster may be moving between slices.
const longestMoveOfCopies = kube.AbsenceCounts

// settleAbsence returns how long to wait before something is withdrawn because a cluster, or
// its addon, is absent. When that time is over, it decides again from the current cache.
// While the slices of Placements cannot tell a cluster that moves from one that was removed,
// the result is Unknown, for as long as longest.
func (r *Rule) settleAbsence(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result, longest time.Duration,
) (rule.Observation, rule.Result, time.Duration, error) {
	switch {
	case result.ByAddon:
		return r.settleAddon(ctx, pair, o, result, longest)
	case result.ByPlacement:
		return r.settleDecisions(ctx, pair, o, result, longest)
	case result.Answer == rule.No && slices.Contains(result.Rests, rule.PlacementCRD):
		if left := r.settling.starting(r.clock.Now()); left > 0 { // it requires a Placement, and none is known yet
			return o, result.Postponed(left, whyStarted), 0, nil
		}
		return o, result, 0, nil
	default:
		return o, result, 0, nil
	}
}

// settleDecisions is settleAbsence for a cluster that is absent from the decisions of the
// namespace's Placements.
func (r *Rule) settleDecisions(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result, longest time.Duration,
) (rule.Observation, rule.Result, time.Duration, error) {
	now := r.clock.Now()
	r.settling.see(o.Placements, now)
	if wait := r.settling.absence(pair, o.Placements, now); wait > 0 {
		return o, result, wait, nil
	}
	var err error
	if o.Placements, err = r.observePlacements(ctx, pair); err != nil {
		return o, result, 0, err
	}
	o.Lost = r.settling.lost(pair.Namespace, o.Placements)
	r.settling.see(o.Placements, now)
	if result = rule.Pair(o); !result.ByPlacement {
		if result.Answer == rule.Yes {
			r.settling.Present(pair)
		}
		return o, result, 0, nil
	}
	if wait := r.settling.absence(pair, o.Placements, now); wait > 0 {
		return o, result, wait, nil
	}
	since, ok := r.settling.absent.Get(pair)
	if !ok {
		return o, result, settleTime, nil // it has returned in the meantime
	}
	left, err := r.vanished(ctx, pair.Namespace, o.Lost, now)
	if err != nil {
		return o, result, 0, err
	}
	if left > 0 && kube.TimeLeft(since, kube.AbsenceCounts, now) > 0 {
		return o, result.Vanished(left, o.Lost...), 0, nil
	}
	if left = r.settling.starting(now); left > 0 { // another Placement may have disappeared before
		return o, result.Postponed(left, whyStarted), 0, nil
	}
	var moving []string
	for _, p := range o.Placements {
		if p.MayMove(pair.Name) {
			moving = append(moving, p.Placement.Name)
			result.Inconclusive = append(result.Inconclusive, client.ObjectKeyFromObject(p.Placement))
		}
	}
	left = kube.TimeLeft(since, longest, now)
	if len(moving) > 0 && left > 0 {
		return o, result.Unsettled(left, whyMoving, moving...), 0, nil
	}
	choosing, err := r.mayChoose(ctx, o, pair.Name, since, left == 0)
	if choosing == "" {
		return o, result, 0, err
	}
	return o, result.Unsettled(kube.Sooner(left, rule.LagRecheck), whyMoving, choosing), 0, nil
}

// vanished returns the time until Placements that published, and no longer do, count as
// deleted. One that exists has only ceased to publish.
func (r *Rule) vanished(
	ctx context.Context, namespace string, names []string, now time.Time,
) (time.Duration, error) {
	var gone []string
	var recreated time.Duration
	for _, name := range names {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		placement, err := kube.Get(ctx, r.cache, key, &clusterv1beta1.Placement{})
		switch {
		case err != nil:
			return 0, err
		case placement == nil:
			gone = append(gone, name)
		case rule.Publishes(placement): // recreated since the pair was observed
			recreated = settleTime
		default:
			r.settling.Unpublished(key)
		}
	}
	return max(r.settling.missing(namespace, gone, now), recreated), nil
}

const whyMoving = "Placement %q does not name it, but may be moving it to another slice of its decisions"

// mayChoose names a Placement of an observation that chooses, or may choose, a cluster that has been
// absent from its slices for a while, although the cached slices deny that; "" if none does. It
// reads those live that are of a kind that hides clusters: the cache may lag. When nothing more is to
// be waited for (finally), it reads all of them, and only one that names the cluster chooses it. All
// pairs of the namespace share what was read in the last second.
func (r *Rule) mayChoose(
	ctx context.Context, o rule.Observation, cluster string, since time.Time, finally bool,
) (name string, err error) {
	all := finally || o.Lagging.Any(rule.PlacementCRD, rule.DecisionCRD)
	var hiding []types.NamespacedName
	for _, p := range o.Placements {
		if all || p.MayHide() {
			hiding = append(hiding, client.ObjectKeyFromObject(p.Placement))
		}
	}
	live, err := r.live.placements(ctx, hiding, r.live.recent(since))
	if err != nil {
		return "", err
	}
	for i, p := range live {
		if p == nil { // the cache will show that it is gone
			return hiding[i].Name, nil
		}
		now := p.Observed(cluster)
		if now.Decides || !finally && (rule.UndecidedReason(now) != "" || now.MayMove(cluster)) {
			return hiding[i].Name, nil
		}
	}
	return "", nil
}

// settleWidening makes a Yes Unknown that rests on the absence of Placements which have only
// just disappeared: they may be about to be recreated, and without them a namespace shows
// every cluster of its sets.
func (r *Rule) settleWidening(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result,
) (rule.Result, error) {
	switch {
	case result.Answer != rule.Yes || len(o.Placements) > 0:
		return result, nil
	case len(o.Lost) == 0:
		return r.settleStart(pair.Namespace, o, result), nil
	}
	left, err := r.vanished(ctx, pair.Namespace, o.Lost, r.clock.Now())
	if left == 0 {
		return result, err
	}
	return result.Vanished(left, o.Lost...), nil
}

const whyStarted = "awaits a decision: the manager has just started, so a Placement may be missing only for a moment"

// settleStart makes a Yes Unknown that rests on the absence of Placements, while one may have
// disappeared before this process could see it. It concerns only namespaces that had profiles
// at the start, and of these only pairs without one: existing profiles stay.
func (r *Rule) settleStart(namespace string, o rule.Observation, result rule.Result) rule.Result {
	left := r.settling.startingIn(namespace, r.clock.Now())
	if left == 0 || o.Profile != nil {
		return result
	}
	return result.Postponed(left, whyStarted)
}

// settleAddon is settleAbsence for a cluster whose addon is absent or being deleted. OCM's
// addon manager deletes it as soon as no slice of the install strategy's Placements names the
// cluster, and creates it again when one does (open-cluster-management-io/ocm issue 1346).
func (r *Rule) settleAddon(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result, longest time.Duration,
) (rule.Observation, rule.Result, time.Duration, error) {
	now := r.clock.Now()
	since := r.settling.mayReturn(pair, now)
	assumed := o
	assumed.AssumesAddon = true
	rest := rule.Pair(assumed)
	standing, wait, err := r.installation(ctx, pair.Name, since, now, longest)
	if wait > 0 || err != nil {
		return o, result, wait, err
	}
	if !standing.MayReturn || rest.Answer == rule.No && !rest.ByPlacement {
		r.settling.installing.Over(pair)
		r.settling.Present(pair)
		return o, result, 0, nil
	}
	if rest.ByPlacement {
		var settled rule.Observation
		settled, rest, wait, err = r.settleDecisions(ctx, pair, assumed, rest, longest)
		if wait > 0 || err != nil || rest.Answer == rule.No {
			return settled, rest, wait, err
		}
	}
	if standing.Named {
		longest = rule.LongestMove // OCM creates the addon again as soon as it can
	}
	if left := kube.TimeLeft(since, min(longest, standing.Longest), now); left > 0 {
		const why = "keeps its profile: the addon is being removed, but the install strategy may create it again"
		result = result.Postponed(kube.Sooner(left, rest.Again), why)
		result.Undecided = rest.Undecided
		return o, result, 0, nil
	}
	result.Inconclusive = standing.Placements
	return o, result, 0, nil
}
