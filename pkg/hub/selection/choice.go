package selection

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Choice returns, from the caches, what a Placement chooses. A No in it has been confirmed:
// none of the objects that it rests on were deleted with their CRD.
func (r *Rule) Choice(ctx context.Context, placement types.NamespacedName) (rule.Choice, error) {
	if !r.Ready() {
		return rule.Choice{Result: notReady}, nil
	}
	o, err := r.observeChoice(ctx, placement)
	if err != nil {
		return rule.Choice{}, err
	}
	choice := rule.ChoiceOf(o)
	if choice.Answer != rule.No {
		return choice, nil
	}
	if o.Placement == nil || o.Placement.DeletionTimestamp != nil {
		if left := r.settling.missing(placement.Namespace, []string{placement.Name}, r.clock.Now()); left > 0 {
			choice.Result = choice.Vanished(left, placement.Name)
			return choice, nil
		}
	}
	if choice.Result, err = r.confirmDefinitions(ctx, choice.Result); err != nil || choice.Answer != rule.No {
		return choice, err
	}
	if !choice.Going && o.Lagging.Any(rule.PlacementCRD, rule.BindingCRD) {
		live, err := r.choiceLive(ctx, placement, o)
		if err != nil || live != rule.No {
			choice.Result = choice.Result.Lagging()
			return choice, err
		}
	}
	r.settling.rememberDeleted(placement.Namespace, r.clock.Now())
	return choice, nil
}

// choiceLive decides about a Placement again with that and the bindings of its namespace read live.
func (r *Rule) choiceLive(
	ctx context.Context, key types.NamespacedName, o rule.ChoiceObservation,
) (rule.Answer, error) {
	since := r.live.recent(time.Time{})
	var err error
	o.Placement, err = liveObject[clusterv1beta1.Placement](ctx, r.live, key, &clusterv1beta1.PlacementList{}, since)
	if err != nil {
		return rule.Unknown, err
	}
	o.Bindings, _, err = r.live.bindings(ctx, key.Namespace, since)
	return rule.ChoiceOf(o).Answer, err
}

func (r *Rule) observeChoice(ctx context.Context, key types.NamespacedName) (rule.ChoiceObservation, error) {
	var o rule.ChoiceObservation
	var err error
	if err = r.observeDefinitions(ctx, &o.Observation); err != nil {
		return o, err
	}
	if o.Placement, err = kube.Get(ctx, r.cache, key, &clusterv1beta1.Placement{}); err != nil {
		return o, err
	}
	namespace := types.NamespacedName{Name: key.Namespace}
	if o.Namespace, err = kube.Get(ctx, r.cache, namespace, kube.Partial(kube.NamespaceKind)); err != nil {
		return o, err
	}
	if o.Placement == nil {
		return o, nil
	}
	if o.Bindings, err = observeBindings(ctx, r.cache, key.Namespace); err != nil {
		return o, err
	}
	o.Decisions, err = r.decisions(ctx, o.Placement)
	return o, err
}

// Leaving returns which of some clusters a Placement has ceased to choose; the caller passes
// all clusters that the choice lacks and for which it would withdraw something. An absence
// counts as Settle says, for each Placement by itself. again is when to ask again; zero if no
// absence will count by time alone.
//
// Like Settle, it may only be called by controllers with the watches of Rule.WatchChoices.
func (r *Rule) Leaving(
	ctx context.Context, placement types.NamespacedName, choice rule.Choice, clusters []string,
) (left []string, again time.Duration, err error) {
	if choice.Answer != rule.Yes {
		return nil, 0, nil
	}
	now := r.clock.Now()
	observed := []rule.ObservedPlacement{choice.Observed}
	r.settling.see(observed, now)
	for _, crd := range rule.LeavingCRDs {
		if slices.Contains(choice.Restoring, crd) {
			return nil, r.definitions.Left(rule.LeavingCRDs...), nil
		}
	}
	// Of an undecided one, an event of the Placement or its decisions will trigger another call.
	var decided, undecided []string
	for _, cluster := range clusters {
		if rule.UndecidedAbout(choice.Observed, cluster) == "" {
			decided = append(decided, cluster)
		} else {
			undecided = append(undecided, cluster)
		}
	}
	clusters = decided
	waits := r.settling.leaving(placement, observed, decided, undecided, now)
	for _, cluster := range clusters {
		wait := waits[cluster]
		if wait == 0 {
			if wait, err = r.leftMoving(ctx, placement, choice, cluster, now); err != nil {
				return nil, 0, err
			}
		}
		if wait > 0 {
			again = kube.Sooner(again, wait)
		} else {
			left = append(left, cluster)
		}
	}
	if len(left) == 0 {
		return nil, again, nil
	}
	doubtful, err := r.definitions.Confirm(ctx, rule.LeavingCRDs...)
	if err != nil || doubtful != "" {
		return nil, 0, err // an event of the CRD will trigger another call
	}
	return left, again, nil
}

// leftMoving returns how long a cluster may still turn up in another slice.
func (r *Rule) leftMoving(
	ctx context.Context, placement types.NamespacedName, choice rule.Choice, cluster string, now time.Time,
) (time.Duration, error) {
	since, ok := r.settling.leftSince(placement, cluster)
	if !ok {
		return settleTime, nil // it has returned in the meantime
	}
	left := kube.TimeLeft(since, rule.LongestMove, now)
	if left > 0 && choice.Observed.MayMove(cluster) {
		return left, nil
	}
	o := rule.Observation{Placements: []rule.ObservedPlacement{choice.Observed}, Lagging: choice.Lagging}
	hiding := rule.Hiding(o, left == 0)
	live, err := r.live.placements(ctx, hiding, r.live.recent(since))
	if err != nil || rule.Choosing(live, hiding, cluster, left == 0) == "" {
		return 0, err
	}
	return cmp.Or(left, rule.LagRecheck), nil
}

// Choosing returns the publishing Placements of a pair's namespace whose decisions contain
// its cluster.
func (r *Rule) Choosing(ctx context.Context, pair types.NamespacedName) ([]types.NamespacedName, error) {
	placements, err := r.Publishing(ctx, pair.Namespace)
	if err != nil {
		return nil, err
	}
	deciding, err := r.deciding(ctx, pair)
	if err != nil {
		return nil, err
	}
	var choosing []types.NamespacedName
	for _, placement := range placements {
		if _, decides := deciding[placement.Name]; decides {
			choosing = append(choosing, placement)
		}
	}
	return choosing, nil
}

// SubscribeDefinitions has changed called when every Choice and every pair must be evaluated
// again: the rule is prepared now, or a kind that it depends on is no longer served, is served
// again, or its missing objects begin to count as missing. changed must return at once.
func (r *Rule) SubscribeDefinitions(changed func(context.Context)) {
	r.changes.definitions.Subscribe(changed)
}

// Publishing returns the publishing Placements of a namespace, or of all namespaces if it
// is empty.
func (r *Rule) Publishing(ctx context.Context, namespace string) ([]types.NamespacedName, error) {
	return routes.Publishing(ctx, r.cache, namespace)
}

// WatchChoices adds to a controller the watches of everything that Choice reads, except
// CRDs, which SubscribeDefinitions covers. The functions of Changed enqueue its requests.
func (r *Rule) WatchChoices(b *builder.Builder, changed routes.Changed) *builder.Builder {
	return routes.WatchChoices(b, r.cache, r.settling, changed)
}
