package selection

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// definitionKey is the name of the ClusterManagementAddOn.
var definitionKey = types.NamespacedName{Name: contract.AddonName}

// installPlacements returns the Placements with which the install strategy chooses clusters,
// according to the cache.
func (r *Rule) installPlacements(ctx context.Context) ([]types.NamespacedName, error) {
	definition, err := kube.Get(ctx, r.cache, definitionKey, &addonv1beta1.ClusterManagementAddOn{})
	return rule.InstallPlacements(definition), err
}

// installation decides from the cache and, if that denies that the addon may return although
// the slices are of a kind that hides clusters, from live reads that did not begin before the
// addon was seen absent. wait is how long to wait for the next of these: clusters lose the
// addon many at a time, and one read a second serves all of them. Once the absence has lasted
// for longest, nothing is read.
func (r *Rule) installation(
	ctx context.Context, cluster string, since, now time.Time, longest time.Duration,
) (standing rule.Installation, wait time.Duration, err error) {
	keys, err := r.installPlacements(ctx)
	if err != nil {
		return rule.Installation{}, 0, err
	}
	cached := make([]*rule.ObservedPlacement, len(keys))
	hides := false
	for i, key := range keys {
		if cached[i], err = r.observePlacement(ctx, key, cluster); err != nil {
			return rule.Installation{}, 0, err
		}
		hides = hides || cached[i] != nil && cached[i].MayHide()
	}
	standing = rule.InstallationOf(cluster, keys, cached)
	if standing.MayReturn || !hides || kube.TimeLeft(since, longest, now) == 0 {
		return standing, 0, nil
	}
	return r.liveInstallation(ctx, cluster, since)
}

// liveInstallation reads the install strategy, too: its cache and those of addons and slices
// have separate watches, and any of them may lag.
func (r *Rule) liveInstallation(
	ctx context.Context, cluster string, since time.Time,
) (standing rule.Installation, wait time.Duration, err error) {
	since = r.live.recent(since)
	definitions := &addonv1beta1.ClusterManagementAddOnList{}
	if wait := r.live.tooSoon(objectRead(definitions, definitionKey), since); wait > 0 {
		return rule.Installation{}, wait, nil
	}
	definition, err := liveObject[addonv1beta1.ClusterManagementAddOn](ctx, r.live, definitionKey, definitions, since)
	if err != nil {
		return rule.Installation{}, 0, err
	}
	keys := rule.InstallPlacements(definition)
	live := make([]*rule.ObservedPlacement, len(keys))
	for i, key := range keys {
		if wait := r.live.tooSoon(placementRead(key), since); wait > 0 {
			return rule.Installation{}, wait, nil
		}
		p, err := r.live.placement(ctx, key, since)
		if err != nil {
			return rule.Installation{}, 0, err
		}
		if p != nil {
			now := p.Observed(cluster)
			live[i] = &now
		}
	}
	return rule.InstallationOf(cluster, keys, live), 0, nil
}

// observePlacement reads a Placement from the cache, and whether it decides for a cluster;
// nil if it does not exist.
func (r *Rule) observePlacement(
	ctx context.Context, key types.NamespacedName, cluster string,
) (*rule.ObservedPlacement, error) {
	placement, err := kube.Get(ctx, r.cache, key, &clusterv1beta1.Placement{})
	if err != nil || placement == nil {
		return nil, err
	}
	deciding, err := r.deciding(ctx, types.NamespacedName{Namespace: key.Namespace, Name: cluster})
	if err != nil {
		return nil, err
	}
	sum, err := r.summary(ctx, placement)
	if err != nil {
		return nil, err
	}
	_, decides := deciding[key.Name]
	return &rule.ObservedPlacement{Placement: placement, Decides: decides, Tally: sum}, nil
}

// isInstall reports whether the install strategy refers to a Placement.
func (r *Rule) isInstall(ctx context.Context, key types.NamespacedName) (bool, error) {
	keys, err := r.installPlacements(ctx)
	return slices.Contains(keys, key), err
}

// Reinstalls says whether OCM is about to create an addon again that is being deleted: Yes if
// a slice of the install strategy's Placements names its cluster. Strategy and slices are read
// live after the deletion was seen, which followed OCM's own look at them. While that is
// Unknown, ask again; it is not for longer than two minutes after the deletion, or after it was
// first seen if nothing can be read.
func (r *Rule) Reinstalls(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) (rule.Answer, error) {
	now := r.clock.Now()
	seen := r.settling.mayReturn(types.NamespacedName{Name: addon.Namespace + "/" + string(addon.UID)}, now)
	unread := kube.TimeLeft(seen, rule.LongestMove, now)
	if !r.prepared.Load() {
		return unknownFor(unread), nil
	}
	standing, wait, err := r.liveInstallation(ctx, addon.Namespace, seen)
	if (wait > 0 || err != nil) && unread > 0 {
		return rule.Unknown, err
	}
	deleted := seen // a manager that restarts does not wait again
	if at := addon.DeletionTimestamp; at != nil && at.Time.Before(seen) {
		deleted = at.Time
	}
	switch {
	case standing.Named:
		return rule.Yes, nil
	case standing.MayReturn:
		return unknownFor(kube.TimeLeft(deleted, standing.Longest, now)), nil
	default:
		return rule.No, nil
	}
}

// unknownFor is Unknown while time is left, then No.
func unknownFor(left time.Duration) rule.Answer {
	if left > 0 {
		return rule.Unknown
	}
	return rule.No
}

// PlacementRisk is a Placement of the install strategy from which OCM may remove the addon of
// clusters that it has chosen without interruption.
type PlacementRisk struct {
	Name    string
	Grouped bool
}

// InstallRisks returns the Placements of a namespace with which the install strategy chooses
// clusters, and whose decisions take more than one slice.
func (r *Rule) InstallRisks(ctx context.Context, namespace string) ([]PlacementRisk, error) {
	if !r.prepared.Load() {
		return nil, nil
	}
	keys, err := r.installPlacements(ctx)
	if err != nil {
		return nil, err
	}
	var risks []PlacementRisk
	for _, key := range keys {
		if key.Namespace != namespace {
			continue
		}
		p, err := r.observePlacement(ctx, key, "")
		if err != nil {
			return nil, err
		}
		if p != nil && (rule.IsGrouped(p.Placement) || p.Tally.Slices > 1) {
			risks = append(risks, PlacementRisk{key.Name, rule.IsGrouped(p.Placement)})
		}
	}
	return risks, nil
}

// AskAgain has enqueue called with every pair that waits because the install strategy may
// create its cluster's addon again, and tells the subscribers of SubscribeEarly about it. That
// is a lot of work while many clusters lose the addon: do it once for several changes.
func (r *Rule) AskAgain(enqueue func(pair types.NamespacedName)) {
	for _, pair := range r.settling.allInstalling() {
		r.changes.early.Tell(pair)
		enqueue(pair)
	}
}

// SubscribeInstall has changed called with the namespace of a Placement of the install
// strategy when that or the Placement's decisions change, so that AskAgain is due. changed must
// return at once.
func (r *Rule) SubscribeInstall(changed func(namespace string)) {
	r.changes.install.Subscribe(changed)
}

// onInstallStrategy notifies subscribers of the Placements of a changed install strategy.
func (r *Rule) onInstallStrategy(before, after *addonv1beta1.ClusterManagementAddOn, _ bool) {
	if before != nil && after != nil && before.Generation == after.Generation {
		return
	}
	for _, definition := range []*addonv1beta1.ClusterManagementAddOn{before, after} {
		if definition == nil {
			continue
		}
		for _, p := range definition.Spec.InstallStrategy.Placements {
			r.changes.install.Tell(p.Namespace)
		}
	}
}
