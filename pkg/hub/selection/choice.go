package selection

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Choice returns, from the caches, what a Placement chooses. A No in it has been confirmed:
// none of the objects that it rests on were deleted with their CRD.
func (r *Rule) Choice(ctx context.Context, placement types.NamespacedName) (Choice, error) {
	if !r.Ready() {
		return Choice{Result: notReady}, nil
	}
	o, err := r.observeChoice(ctx, placement)
	if err != nil {
		return Choice{}, err
	}
	choice := decideChoice(o)
	if choice.Answer != No {
		return choice, nil
	}
	if o.placement == nil || o.placement.DeletionTimestamp != nil {
		if left := r.settling.missing(placement.Namespace, []string{placement.Name}, r.clock.Now()); left > 0 {
			choice.Result = choice.vanished(left, placement.Name)
			return choice, nil
		}
	}
	if choice.Result, err = r.confirmed(ctx, choice.Result); err != nil || choice.Answer != No {
		return choice, err
	}
	if o.placement == nil && o.lagging.Any(placementCRD) {
		live, err := r.live.placement(ctx, placement, r.live.recent(time.Time{}))
		if err != nil || live != nil {
			choice.Result = Result{Why: whyLags, Again: lagRecheck}
			return choice, err
		}
	}
	r.settling.deleted(placement.Namespace, r.clock.Now())
	return choice, nil
}

func (r *Rule) observeChoice(ctx context.Context, key types.NamespacedName) (choiceObservation, error) {
	var o choiceObservation
	var err error
	if err = r.observeDefinitions(ctx, &o.Observation); err != nil {
		return o, err
	}
	if o.placement, err = kube.Get(ctx, r.cache, key, &clusterv1beta1.Placement{}); err != nil {
		return o, err
	}
	namespace := types.NamespacedName{Name: key.Namespace}
	if o.Namespace, err = kube.Get(ctx, r.cache, namespace, kube.Partial(kube.NamespaceKind)); err != nil {
		return o, err
	}
	if o.placement == nil {
		return o, nil
	}
	if o.bindings, err = observeBindings(ctx, r.cache, key.Namespace); err != nil {
		return o, err
	}
	o.decisions, err = r.decisions(ctx, o.placement)
	return o, err
}

// Leaving returns which of some clusters a Placement has ceased to choose; the caller
// passes all clusters that the choice lacks and from which it would take something away. An
// absence counts as Settle says, for each Placement by itself. again is when to ask again;
// zero if no absence will count by time alone.
//
// Like Settle, it may only be called by controllers with the watches of Rule.WatchChoices.
func (r *Rule) Leaving(
	ctx context.Context, placement types.NamespacedName, choice Choice, clusters []string,
) (left []string, again time.Duration, err error) {
	if choice.Answer != Yes {
		return nil, 0, nil
	}
	now := r.clock.Now()
	observed := []observedPlacement{choice.observed}
	r.settling.see(observed, now)
	for _, crd := range leavingCRDs {
		if slices.Contains(choice.restoring, crd) {
			return nil, r.definitions.Left(leavingCRDs...), nil
		}
	}
	// Of an undecided one, an event of the Placement or its decisions will trigger another call.
	var decided, undecided []string
	for _, cluster := range clusters {
		if undecidedAbout(choice.observed, cluster) == "" {
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
	doubtful, err := r.definitions.Confirm(ctx, leavingCRDs...)
	if err != nil || doubtful != "" {
		return nil, 0, err // an event of the CRD will trigger another call
	}
	return left, again, nil
}

// leftMoving returns how long a cluster may still turn up in another slice.
func (r *Rule) leftMoving(
	ctx context.Context, placement types.NamespacedName, choice Choice, cluster string, now time.Time,
) (time.Duration, error) {
	since, ok := r.settling.leftSince(placement, cluster)
	if !ok {
		return settleTime, nil // it has returned meanwhile
	}
	left := kube.TimeLeft(since, longestMove, now)
	switch {
	case left == 0:
		return 0, nil
	case choice.observed.mayMove(cluster):
		return left, nil
	}
	choosing, err := r.mayChoose(ctx, []observedPlacement{choice.observed}, choice.lagging, cluster, since)
	if choosing == "" || err != nil {
		return 0, err
	}
	return left, nil
}

// Publishing returns the publishing Placements of a namespace, or of all namespaces if it
// is empty.
func (r *Rule) Publishing(ctx context.Context, namespace string) ([]types.NamespacedName, error) {
	list := &clusterv1beta1.PlacementList{}
	publishing := client.MatchingFields{IndexPublishingPlacement: published}
	if err := r.cache.List(ctx, list, client.InNamespace(namespace), publishing, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing publishing Placements: %w", err)
	}
	keys := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys, nil
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

// Changed holds functions that are called with a Placement when its Choice may have
// changed.
type Changed struct {
	// Scope is called when the Placement, or the namespace's bindings, began or ceased to
	// publish.
	Scope func(placement types.NamespacedName)

	// Decisions is called when the Placement may have chosen other clusters.
	Decisions func(placement types.NamespacedName)
}

// WatchChoices adds to a controller the watches of everything that Choice reads, except
// CRDs, which SubscribeDefinitions covers. The functions of Changed enqueue its requests.
func (r *Rule) WatchChoices(b *builder.Builder, changed Changed) *builder.Builder {
	c := choiceRoutes{rule: r, changed: changed}
	return b.
		Watches(&clusterv1beta1.Placement{}, tells(c.placementScope), when(ofPublishing(placementScopeChanged))).
		Watches(&clusterv1beta1.Placement{}, tells(c.placementStatus), when(ofPublishing(placementStatusChanged))).
		Watches(&clusterv1beta1.PlacementDecision{}, tells(c.decision), when(kube.OnChange(choiceChanged))).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, tells(c.inNamespace), when(kube.OnChange(bindingChanged))).
		WatchesMetadata(kube.Partial(kube.NamespaceKind), tells(c.namespace), when(kube.OnChange(kube.Never)))
}

// SubscribeDefinitions has changed called when every Choice and every pair must be evaluated
// again: the rule is prepared now, or a kind that it depends on is no longer served, is served
// again, or its missing objects begin to count as missing. changed must return at once.
func (r *Rule) SubscribeDefinitions(changed func(context.Context)) {
	r.changes.subscribeDefinitions(changed)
}

// choiceRoutes map events to Placements.
type choiceRoutes struct {
	rule    *Rule
	changed Changed
}

// tells makes an event handler of a function that enqueues requests by other means.
func tells(tell func(context.Context, client.Object)) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		tell(ctx, obj)
		return nil
	})
}

func (c choiceRoutes) placementScope(_ context.Context, obj client.Object) {
	c.changed.Scope(client.ObjectKeyFromObject(obj))
}

func (c choiceRoutes) placementStatus(_ context.Context, obj client.Object) {
	c.changed.Decisions(client.ObjectKeyFromObject(obj))
}

// decision maps a slice of decisions, in its old and new state, to its Placement, if that
// publishes. The clusters in the slice have not been absent from it before.
func (c choiceRoutes) decision(ctx context.Context, obj client.Object) {
	decision, ok := obj.(*clusterv1beta1.PlacementDecision)
	if !ok || placementOf(decision) == "" {
		return
	}
	key := placementKey(decision)
	placement, err := kube.Get(ctx, c.rule.cache, key, &clusterv1beta1.Placement{})
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Placement of a PlacementDecision")
	}
	if placement == nil || !publishes(placement) {
		return
	}
	c.rule.settling.chosen(key, decidedClusters(decision))
	c.changed.Decisions(key)
}

func (c choiceRoutes) inNamespace(ctx context.Context, obj client.Object) {
	c.tellAll(ctx, obj.GetNamespace(), c.changed.Scope)
}

func (c choiceRoutes) namespace(ctx context.Context, obj client.Object) {
	c.tellAll(ctx, obj.GetName(), c.changed.Decisions)
}

func (c choiceRoutes) tellAll(ctx context.Context, namespace string, tell func(types.NamespacedName)) {
	placements, err := c.rule.Publishing(ctx, namespace)
	if err != nil { // the cache is being shut down
		log.FromContext(ctx).Error(err, "Cannot find the Placements an event concerns")
	}
	for _, placement := range placements {
		tell(placement)
	}
}
