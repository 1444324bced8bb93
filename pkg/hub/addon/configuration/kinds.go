package configuration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Kind is a kind of configuration that this addon supports. Open Cluster Management chooses
// one of each kind for a cluster: the one that the cluster's addon names itself, else that
// of its Placement, else that of all clusters.
type Kind struct {
	schema.GroupVersionResource
	name string
}

// DeploymentConfigKind holds the settings in which clusters may differ.
func DeploymentConfigKind() Kind {
	return Kind{utils.AddOnDeploymentConfigGVR, "AddOnDeploymentConfig"}
}

// RevisionKind holds what an upgrade changes. It is a separate kind, so that clusters that
// name an AddOnDeploymentConfig are upgraded like the others.
func RevisionKind() Kind {
	return Kind{schema.GroupVersionResource{
		Group: contract.AgentRevisionGroup, Version: contract.AgentRevisionVersion, Resource: contract.AgentRevisionResource,
	}, contract.AgentRevisionKind}
}

// SupportedKinds are both.
func SupportedKinds() []Kind { return []Kind{DeploymentConfigKind(), RevisionKind()} }

// SupportedResources are those of both.
func SupportedResources() []schema.GroupVersionResource {
	var resources []schema.GroupVersionResource
	for _, kind := range SupportedKinds() {
		resources = append(resources, kind.GroupVersionResource)
	}
	return resources
}

func (k Kind) is(other addonv1beta1.ConfigGroupResource) bool {
	return k.Group == other.Group && k.Resource == other.Resource
}

// Desired returns the configurations of this kind that the addon should have.
func (k Kind) Desired(addon *addonv1beta1.ManagedClusterAddOn) []addonv1beta1.ConfigSpecHash {
	var desired []addonv1beta1.ConfigSpecHash
	for _, reference := range addon.Status.ConfigReferences {
		if k.is(reference.ConfigGroupResource) && reference.DesiredConfig != nil &&
			reference.DesiredConfig.Name != "" && reference.DesiredConfig.Name != addonv1beta1.ReservedNoDefaultConfigName {
			desired = append(desired, *reference.DesiredConfig)
		}
	}
	return desired
}

// Named reports whether the addon itself names one of this kind.
func (k Kind) Named(addon *addonv1beta1.ManagedClusterAddOn) bool { return k.in(addon.Spec.Configs) }

// offered reports whether there is a configuration of this kind for all clusters, or for
// those of a Placement.
func (k Kind) offered(definition *addonv1beta1.ClusterManagementAddOn) bool {
	if k.in(definition.Spec.DefaultConfigs) {
		return true
	}
	return slices.ContainsFunc(definition.Spec.InstallStrategy.Placements,
		func(placement addonv1beta1.PlacementStrategy) bool { return k.in(placement.Configs) })
}

func (k Kind) in(configs []addonv1beta1.AddOnConfig) bool {
	return slices.ContainsFunc(configs, func(config addonv1beta1.AddOnConfig) bool {
		return k.is(config.ConfigGroupResource) && config.Name != addonv1beta1.ReservedNoDefaultConfigName
	})
}

// key is the key of a configuration in the indexes by configuration.
func (k Kind) key(name string) string { return fmt.Sprintf("%s/%s/%s", k.Group, k.Resource, name) }

// HasOwn reports whether the addon itself names a configuration of any kind.
func HasOwn(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(SupportedKinds(), func(k Kind) bool { return k.Named(addon) })
}

// NameOf returns the key of a configuration in its cache. Without a namespace, it is the
// name.
func NameOf(config addonv1beta1.ConfigReferent) string {
	return strings.TrimPrefix(config.Namespace+"/"+config.Name, "/")
}
