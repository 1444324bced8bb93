package addon

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// kind is a kind of configuration that this addon supports. Open Cluster Management chooses
// one of each kind for a cluster: the one that the cluster's addon names itself, else that
// of its Placement, else that of all clusters.
type kind struct {
	schema.GroupVersionResource
	name string
}

// deploymentConfigKind holds the settings in which clusters may differ.
func deploymentConfigKind() kind {
	return kind{utils.AddOnDeploymentConfigGVR, "AddOnDeploymentConfig"}
}

// revisionKind holds what an upgrade changes. It is a kind of its own, so that clusters
// that name an AddOnDeploymentConfig are upgraded like the others.
func revisionKind() kind {
	return kind{schema.GroupVersionResource{
		Group: contract.AgentRevisionGroup, Version: contract.AgentRevisionVersion, Resource: contract.AgentRevisionResource,
	}, contract.AgentRevisionKind}
}

func supportedKinds() []kind { return []kind{deploymentConfigKind(), revisionKind()} }

func (k kind) is(other addonv1beta1.ConfigGroupResource) bool {
	return k.Group == other.Group && k.Resource == other.Resource
}

// desired returns the configurations of this kind that the addon should have.
func (k kind) desired(addon *addonv1beta1.ManagedClusterAddOn) []addonv1beta1.ConfigSpecHash {
	var desired []addonv1beta1.ConfigSpecHash
	for _, reference := range addon.Status.ConfigReferences {
		if k.is(reference.ConfigGroupResource) && reference.DesiredConfig != nil &&
			reference.DesiredConfig.Name != "" && reference.DesiredConfig.Name != addonv1beta1.ReservedNoDefaultConfigName {
			desired = append(desired, *reference.DesiredConfig)
		}
	}
	return desired
}

// named reports whether the addon itself names one of this kind.
func (k kind) named(addon *addonv1beta1.ManagedClusterAddOn) bool { return k.in(addon.Spec.Configs) }

// offered reports whether there is a configuration of this kind for all clusters, or for
// those of a Placement.
func (k kind) offered(definition *addonv1beta1.ClusterManagementAddOn) bool {
	if k.in(definition.Spec.DefaultConfigs) {
		return true
	}
	return slices.ContainsFunc(definition.Spec.InstallStrategy.Placements,
		func(placement addonv1beta1.PlacementStrategy) bool { return k.in(placement.Configs) })
}

func (k kind) in(configs []addonv1beta1.AddOnConfig) bool {
	return slices.ContainsFunc(configs, func(config addonv1beta1.AddOnConfig) bool {
		return k.is(config.ConfigGroupResource) && config.Name != addonv1beta1.ReservedNoDefaultConfigName
	})
}

// choose chooses the configuration that the cluster should have, if it exists with the
// content that the cluster should have, and without mistakes.
func (k kind) choose(
	desired []addonv1beta1.ConfigSpecHash, find func(name addonv1beta1.ConfigReferent) *configuration,
) (choice, *refusal) {
	if len(desired) > 1 {
		return choice{}, refuse(contract.ReasonInvalidConfiguration,
			"The addon has %d %ss, but only one is allowed: %s",
			len(desired), k.name, strings.Join(names(desired), ", "))
	}
	name := nameOf(desired[0].ConfigReferent)
	found := find(desired[0].ConfigReferent)
	switch {
	case found == nil:
		return choice{}, refuse(contract.ReasonConfigurationMissing,
			"%s %s, which the addon refers to, does not exist", k.name, name)
	case found.hash != desired[0].SpecHash:
		return choice{}, nil
	case len(found.mistakes) > 0:
		refused := refuse(contract.ReasonInvalidConfiguration,
			"%s %s: %s", k.name, name, strings.Join(found.mistakes, "; "))
		refused.unknownManifests = found.unknownManifests
		return choice{}, refused
	}
	return choice{known: true, name: name, configuration: found}, nil
}

// key is the key of a configuration in the indexes by configuration.
func (k kind) key(name string) string { return fmt.Sprintf("%s/%s/%s", k.Group, k.Resource, name) }

// hasOwnConfiguration reports whether the addon itself names a configuration of any kind.
func hasOwnConfiguration(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(supportedKinds(), func(k kind) bool { return k.named(addon) })
}

func names(configs []addonv1beta1.ConfigSpecHash) []string {
	var all []string
	for _, config := range configs {
		all = append(all, nameOf(config.ConfigReferent))
	}
	return all
}

// nameOf returns the key of a configuration in its cache. Without a namespace, it is the
// name.
func nameOf(config addonv1beta1.ConfigReferent) string {
	return strings.TrimPrefix(config.Namespace+"/"+config.Name, "/")
}
