package configuration

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// decideRevision chooses the AgentRevision of a cluster's addon. As long as Open Cluster
// Management has not assigned one, the spoke stays as it is: its turn may not have come, even
// if the condition Configured says otherwise, because it lags behind changes of the
// definition.
func decideRevision(
	addon *addonv1beta1.ManagedClusterAddOn, definition *addonv1beta1.ClusterManagementAddOn,
	find func(name addonv1beta1.ConfigReferent) *configuration,
) (choice, *Refusal) {
	kind := RevisionKind()
	desired := kind.Desired(addon)
	switch {
	case len(desired) > 0 && find == nil:
		return choice{}, nil
	case len(desired) > 0:
		return kind.choose(desired, find)
	case kind.Named(addon), definition == nil, kind.offered(definition):
		return choice{}, nil
	}
	return choice{}, refuse(contract.ReasonConfigurationMissing,
		"ClusterManagementAddOn %s names no AgentRevision among its defaultConfigs", definition.Name)
}
