package addon

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxMessageBytes bounds what is said about a configuration.
const maxMessageBytes = 1024

// configuration is an AddOnDeploymentConfig that was judged.
type configuration struct {
	// hash is that of the spec, as Open Cluster Management computes it.
	hash string

	overrides overrides
	mistakes  mistakes
}

// choice is which configuration counts for a cluster.
type choice struct {
	// known is false while it cannot be told which one counts: what is on the spoke
	// stays.
	known bool

	// name is the configuration's namespace and name, empty if there is none.
	name          string
	configuration *configuration
}

// refusal is why a configuration is not applied.
type refusal struct {
	reason  string // of the condition ConfigurationApplied
	message string
}

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason: reason, message: kube.Shorten(fmt.Sprintf(format, args...), maxMessageBytes)}
}

// decideConfiguration chooses the configuration of a cluster's addon. Which one it is,
// and which content of it, says Open Cluster Management in status.configReferences:
// a cluster whose turn has not come refers to the content before the last edit. find
// returns a configuration, or nil if it does not exist.
func decideConfiguration(
	addon *addonv1beta1.ManagedClusterAddOn, definition *addonv1beta1.ClusterManagementAddOn,
	find func(name addonv1beta1.ConfigReferent) *configuration,
) (choice, *refusal) {
	desired := desiredConfigurations(addon)
	switch {
	case len(desired) == 0:
		return choice{known: !awaitsConfiguration(addon, definition)}, nil
	case len(desired) > 1:
		return choice{}, refuse(contract.ReasonInvalidConfiguration,
			"The addon has %d AddOnDeploymentConfigs, and only one of that kind is possible: %s",
			len(desired), strings.Join(names(desired), ", "))
	}
	name := nameOf(desired[0].ConfigReferent)
	found := find(desired[0].ConfigReferent)
	switch {
	case found == nil:
		return choice{}, refuse(contract.ReasonConfigurationMissing,
			"AddOnDeploymentConfig %s, which the addon refers to, does not exist", name)
	case found.hash != desired[0].SpecHash:
		return choice{}, nil
	case len(found.mistakes) > 0:
		return choice{}, refuse(contract.ReasonInvalidConfiguration,
			"AddOnDeploymentConfig %s: %s", name, strings.Join(found.mistakes, "; "))
	}
	return choice{known: true, name: name, configuration: found}, nil
}

// desiredConfigurations are the AddOnDeploymentConfigs that the addon is to have.
func desiredConfigurations(addon *addonv1beta1.ManagedClusterAddOn) []addonv1beta1.ConfigSpecHash {
	var desired []addonv1beta1.ConfigSpecHash
	for _, reference := range addon.Status.ConfigReferences {
		if isConfiguration(reference.ConfigGroupResource) && reference.DesiredConfig != nil &&
			reference.DesiredConfig.Name != "" && reference.DesiredConfig.Name != addonv1beta1.ReservedNoDefaultConfigName {
			desired = append(desired, *reference.DesiredConfig)
		}
	}
	return desired
}

// awaitsConfiguration reports whether an addon without a configuration is about to get
// one. Open Cluster Management gives it some time after the addon was created, in a
// progressive rollout when the cluster's turn comes; without waiting for that, the agent
// would first be installed with other settings, and maybe in another namespace. Without a
// definition nothing tells whether there is a configuration.
func awaitsConfiguration(
	addon *addonv1beta1.ManagedClusterAddOn, definition *addonv1beta1.ClusterManagementAddOn,
) bool {
	if hasOwnConfiguration(addon) {
		return true
	}
	return !isConfigured(addon) && (definition == nil || offersConfiguration(definition))
}

// hasOwnConfiguration reports whether the addon itself names a configuration.
func hasOwnConfiguration(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return containsConfiguration(addon.Spec.Configs)
}

// offersConfiguration reports whether there is a configuration for all clusters, or for
// those of a Placement.
func offersConfiguration(definition *addonv1beta1.ClusterManagementAddOn) bool {
	if containsConfiguration(definition.Spec.DefaultConfigs) {
		return true
	}
	for _, placement := range definition.Spec.InstallStrategy.Placements {
		if containsConfiguration(placement.Configs) {
			return true
		}
	}
	return false
}

func containsConfiguration(configs []addonv1beta1.AddOnConfig) bool {
	for _, config := range configs {
		if isConfiguration(config.ConfigGroupResource) && config.Name != addonv1beta1.ReservedNoDefaultConfigName {
			return true
		}
	}
	return false
}

// isConfigured reports whether the addon refers to all configurations that it is to have.
// Open Cluster Management also says so of a cluster that is to have none. While a cluster
// waits for its turn, the condition is False.
func isConfigured(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return apimeta.IsStatusConditionTrue(
		addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
}

func isConfiguration(kind addonv1beta1.ConfigGroupResource) bool {
	supported := utils.AddOnDeploymentConfigGVR
	return kind.Group == supported.Group && kind.Resource == supported.Resource
}

func names(configs []addonv1beta1.ConfigSpecHash) []string {
	var all []string
	for _, config := range configs {
		all = append(all, nameOf(config.ConfigReferent))
	}
	return all
}

func nameOf(config addonv1beta1.ConfigReferent) string { return config.Namespace + "/" + config.Name }

// place is where values come from that one cluster has and another may not.
type place struct {
	// cluster is the ManagedCluster's name, and registries its annotation with the
	// registries of images.
	cluster    string
	registries string

	// namespace is that of the agent that is deployed, empty if there is none.
	namespace string
}

// decideValues returns the values of a cluster's manifests, without what identifies it:
// those of all clusters, as its configuration and its registries change them.
func decideValues(common Values, chosen choice, at place) (Values, *refusal) {
	values := common
	source := "The manager's flag --agent-install-namespace"
	if chosen.configuration != nil {
		values = values.with(chosen.configuration.overrides)
		if chosen.configuration.overrides.installNamespace != "" {
			source = fmt.Sprintf("AddOnDeploymentConfig %s: spec.agentInstallNamespace", chosen.name)
		}
	}
	if at.namespace != "" && at.namespace != values.InstallNamespace {
		return Values{}, refuse(contract.ReasonInstallNamespaceChanged,
			"%s is %s, but the agent runs in %s and is not moved; set it back, or disable the addon on this cluster first",
			source, values.InstallNamespace, at.namespace)
	}
	if values.Image != common.Image {
		return values, nil // the configuration's registries come before the cluster's
	}
	registries, wrong := judgeAnnotation(at.registries)
	if len(wrong) > 0 {
		return Values{}, refuse(contract.ReasonInvalidConfiguration,
			"ManagedCluster %s: %s", at.cluster, strings.Join(wrong, "; "))
	}
	values.Image = mirrored(common.Image, registries)
	return values, nil
}
