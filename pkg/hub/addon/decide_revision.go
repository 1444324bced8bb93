package addon

import (
	"fmt"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// decideRevision chooses the AgentRevision of a cluster's addon. As long as Open Cluster
// Management has not assigned one, the spoke stays as it is: its turn may not have come,
// whatever the condition Configured says, which lags behind changes of the definition.
//
// Without any AgentRevision, the manager's flags apply, if there are any.
func decideRevision(
	addon *addonv1beta1.ManagedClusterAddOn, definition *addonv1beta1.ClusterManagementAddOn,
	find func(name addonv1beta1.ConfigReferent) *configuration, hasFlags bool,
) (choice, *refusal) {
	kind := revisionKind()
	desired := kind.desired(addon)
	switch {
	case len(desired) > 0 && find == nil:
		return choice{}, nil
	case len(desired) > 0:
		return kind.choose(desired, find)
	case kind.named(addon), definition != nil && kind.offered(definition):
		return choice{}, nil
	case hasFlags:
		return choice{known: true}, nil
	case definition == nil:
		return choice{}, nil
	}
	return choice{}, refuse(contract.ReasonConfigurationMissing,
		"ClusterManagementAddOn %s names no AgentRevision among its defaultConfigs", definition.Name)
}

// common holds the values of all clusters without a configuration of their own.
type common struct {
	Values

	// namespaceFrom says where the install namespace comes from.
	namespaceFrom string
}

// commonValues returns those of an AgentRevision or, without one, those of the manager's
// flags.
func commonValues(revision choice, flags Values) common {
	if revision.configuration == nil {
		return common{flags, "The manager's flag --agent-install-namespace"}
	}
	return common{
		revision.configuration.values, fmt.Sprintf("AgentRevision %s: spec.installNamespace", revision.name),
	}
}
