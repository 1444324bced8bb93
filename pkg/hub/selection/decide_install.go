package selection

import (
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// placementsOf returns the Placements with which a ClusterManagementAddOn (nil: none) chooses
// clusters; none if the install strategy is Manual. One that is being deleted installs nothing:
// OCM does not create addons again that are deleted with it.
func placementsOf(definition *addonv1beta1.ClusterManagementAddOn) []types.NamespacedName {
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

// decideInstallation decides whether the Placements of the install strategy, nil where one
// does not exist, may install the addon on a cluster. One that names it is enough.
func decideInstallation(cluster string, keys []types.NamespacedName, found []*observedPlacement) installation {
	var decided installation
	for i, p := range found {
		switch {
		case p == nil:
			// It may be about to be recreated. Until then, OCM installs nothing because of it.
			decided.mayReturn, decided.longest = true, max(decided.longest, kube.AbsenceCounts)
			continue
		case p.decides:
			decided.named, decided.longest = true, longestMove
		case undecidedReason(*p) != "" || p.mayMove(cluster):
			decided.longest = longestMove
		default:
			continue
		}
		decided.mayReturn = true
		decided.placements = append(decided.placements, keys[i])
	}
	return decided
}
