package rule

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Installation says whether the install strategy may create the addon of a cluster again.
type Installation struct {
	MayReturn bool

	// Named is true if a slice names the cluster.
	Named bool

	// Longest is how long to wait for that.
	Longest time.Duration

	// Placements are those that name the cluster, or whose slices cannot tell whether they
	// choose it.
	Placements []types.NamespacedName

	// hides is true if the slices of one are of a kind that hides clusters.
	hides bool
}

// Installs are the Placements with which the install strategy chooses clusters, by the same index; nil where there
// is none.
type Installs struct {
	Keys       []types.NamespacedName
	Placements []*ObservedPlacement
}

// NewInstalls returns the keys of the Placements of a ClusterManagementAddOn, and room for these.
func NewInstalls(definition *addonv1beta1.ClusterManagementAddOn) *Installs {
	keys := InstallPlacements(definition)
	return &Installs{Keys: keys, Placements: make([]*ObservedPlacement, len(keys))}
}

// InstallPlacements returns the Placements with which a ClusterManagementAddOn (nil: none) chooses
// clusters; none if the install strategy is Manual. One that is being deleted installs nothing:
// OCM does not create addons again that are deleted with it.
func InstallPlacements(definition *addonv1beta1.ClusterManagementAddOn) []types.NamespacedName {
	if definition == nil || definition.DeletionTimestamp != nil ||
		definition.Spec.InstallStrategy.Type != addonv1beta1.AddonInstallStrategyPlacements {
		return nil
	}
	keys := make([]types.NamespacedName, 0, len(definition.Spec.InstallStrategy.Placements))
	for _, p := range definition.Spec.InstallStrategy.Placements {
		keys = append(keys, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	}
	return keys
}

// Of decides whether the Placements of the install strategy may install the addon on a cluster. One that names it
// is enough.
func (s Installs) Of(cluster string) Installation {
	var decided Installation
	for i, p := range s.Placements {
		decided.hides = decided.hides || p != nil && p.MayHide()
		switch {
		case p == nil:
			// It may be about to be recreated. Until then, OCM installs nothing because of it.
			decided.MayReturn, decided.Longest = true, max(decided.Longest, kube.AbsenceCounts)
			continue
		case p.Decides:
			decided.Named, decided.Longest = true, LongestMove
		case UndecidedReason(*p) != "" || p.MayMove(cluster):
			decided.Longest = LongestMove
		default:
			continue
		}
		decided.MayReturn = true
		decided.Placements = append(decided.Placements, s.Keys[i])
	}
	return decided
}
