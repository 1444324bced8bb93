package selection

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// definitionKey is the name of the ClusterManagementAddOn.
var definitionKey = types.NamespacedName{Name: contract.AddonName}

// isInstall reports whether the install strategy refers to a Placement.
func (r *Rule) isInstall(ctx context.Context, key types.NamespacedName) (bool, error) {
	keys, err := r.installPlacements(ctx)
	return slices.Contains(keys, key), err
}

// installPlacements returns the Placements to which the install strategy refers.
func (r *Rule) installPlacements(ctx context.Context) ([]types.NamespacedName, error) {
	definition, err := kube.Get(ctx, r.cache, definitionKey, &addonv1beta1.ClusterManagementAddOn{})
	return rule.InstallPlacements(definition), err
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
	read, wait, err := r.liveInstalls(ctx, addon.Namespace, seen)
	switch {
	case (wait > 0 || err != nil) && unread > 0:
		return rule.Unknown, err
	case read == nil:
		return rule.No, nil
	}
	deleted := seen // a manager that restarts does not wait again
	if at := addon.DeletionTimestamp; at != nil && at.Time.Before(seen) {
		deleted = at.Time
	}
	switch install := read.Of(addon.Namespace); {
	case install.Named:
		return rule.Yes, nil
	case install.MayReturn:
		return unknownFor(kube.TimeLeft(deleted, install.Longest, now)), nil
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
		if p != nil && (rule.IsGrouped(p.Placement) || p.Summary.Slices > 1) {
			risks = append(risks, PlacementRisk{key.Name, rule.IsGrouped(p.Placement)})
		}
	}
	return risks, nil
}

// AskAgain has enqueue called with every pair that waits because the install strategy may
// create its cluster's addon again, and notifies the subscribers of SubscribeEarly of it. That
// is a lot of work while many clusters lose the addon: do it once for several changes.
func (r *Rule) AskAgain(enqueue func(pair types.NamespacedName)) {
	for _, pair := range r.settling.allInstalling() {
		r.changes.early.Notify(pair)
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
			r.changes.install.Notify(p.Namespace)
		}
	}
}
