package addon

import (
	"context"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
)

// Reinstalls returns whether Open Cluster Management is about to create an addon again: known
// is false while that is unknown, which it does not stay.
type Reinstalls func(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) (again, known bool, err error)

// isReinstalled reports whether an addon that is being deleted is about to be created again,
// so that the spoke must not be cleaned up. ErrHeld says that this is not known yet. Once the
// clean-up has begun, it continues.
func (a *inventoryAgent) isReinstalled(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn, cleansUp bool,
) (bool, error) {
	if a.reinstalls == nil || addon.DeletionTimestamp.IsZero() || cleansUp ||
		!cluster.DeletionTimestamp.IsZero() || !cluster.Spec.HubAcceptsClient {
		return false, nil
	}
	definition := a.observed.sources.Definition()
	if definition == nil || !definition.DeletionTimestamp.IsZero() ||
		definition.Spec.InstallStrategy.Type != addonv1beta1.AddonInstallStrategyPlacements {
		return false, nil
	}
	again, known, err := a.reinstalls(ctx, addon)
	if err == nil && !known {
		a.askAgain(addon.Namespace)
		return false, configuration.ErrHeld
	}
	return again, err
}
