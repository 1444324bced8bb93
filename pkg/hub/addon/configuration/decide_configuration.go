package configuration

import (
	"errors"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxMessageBytes bounds a message about a configuration.
const maxMessageBytes = 1024

// configuration is an AddOnDeploymentConfig or an AgentRevision that was validated.
type configuration struct {
	// hash is that of the spec, as Open Cluster Management computes it.
	hash string

	overrides overrides        // of an AddOnDeploymentConfig
	values    manifests.Values // of an AgentRevision
	errors    fieldErrors

	// unknownManifests says that an AgentRevision is for another version of the manager.
	unknownManifests bool
}

// choice is the configuration that applies to a cluster.
type choice struct {
	// known is false while the choice is unknown: the spoke stays as it is.
	known bool

	// name is the configuration's namespace and name, empty if there is none.
	name          string
	configuration *configuration
}

// ErrHeld says that the framework must leave the spoke as it is. An event ends that state,
// so it is neither logged nor retried.
var ErrHeld = errors.New("waiting for Open Cluster Management to choose the configuration")

// Refusal is why a configuration is not applied.
type Refusal struct {
	Reason  string // of the condition ConfigurationApplied
	Message string

	// UnknownManifests says that it needs another version of the manager.
	UnknownManifests bool
}

// Error makes a refusal an error for the framework, which puts it into the addon's condition
// ManifestApplied.
func (r *Refusal) Error() string { return r.Message }

// Is makes a refusal an ErrHeld.
func (r *Refusal) Is(target error) bool { return target == ErrHeld }

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: kube.Shorten(fmt.Sprintf(format, args...), maxMessageBytes)}
}

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

// decideConfiguration chooses the configuration of a cluster's addon. Open Cluster
// Management chooses the object and its content, in status.configReferences: a cluster
// whose turn has not come refers to the content before the last edit. find returns a
// configuration, or nil if it does not exist.
func decideConfiguration(
	addon *addonv1beta1.ManagedClusterAddOn, definition *addonv1beta1.ClusterManagementAddOn,
	find func(name addonv1beta1.ConfigReferent) *configuration,
) (choice, *Refusal) {
	kind := DeploymentConfigKind()
	desired := kind.Desired(addon)
	if len(desired) == 0 {
		return choice{known: !awaitsConfiguration(addon, definition)}, nil
	}
	return kind.choose(desired, find)
}

// awaitsConfiguration reports whether an addon without a configuration is about to get one.
// Open Cluster Management assigns it some time after the addon was created, in a
// progressive rollout when the cluster's turn comes. Without waiting for that, the agent
// would first be installed with other settings, and maybe in another namespace. Without a
// definition nothing indicates whether there is a configuration.
func awaitsConfiguration(
	addon *addonv1beta1.ManagedClusterAddOn, definition *addonv1beta1.ClusterManagementAddOn,
) bool {
	kind := DeploymentConfigKind()
	return kind.Named(addon) || !IsConfigured(addon) && (definition == nil || kind.offered(definition))
}

// IsConfigured reports whether the addon refers to all configurations that it should have.
// Open Cluster Management also says so for a cluster that should have none. While a cluster
// waits for its turn, the condition is False.
func IsConfigured(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return apimeta.IsStatusConditionTrue(
		addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
}

// choose chooses the configuration that the cluster should have, if it exists with the
// content that the cluster should have, and without errors.
func (k Kind) choose(
	desired []addonv1beta1.ConfigSpecHash, find func(name addonv1beta1.ConfigReferent) *configuration,
) (choice, *Refusal) {
	if len(desired) > 1 {
		return choice{}, refuse(contract.ReasonInvalidConfiguration,
			"The addon has %d %ss, but only one is allowed: %s",
			len(desired), k.name, strings.Join(names(desired), ", "))
	}
	name := NameOf(desired[0].ConfigReferent)
	found := find(desired[0].ConfigReferent)
	switch {
	case found == nil:
		return choice{}, refuse(contract.ReasonConfigurationMissing,
			"%s %s, which the addon refers to, does not exist", k.name, name)
	case found.hash != desired[0].SpecHash:
		return choice{}, nil
	case len(found.errors) > 0:
		refused := refuse(contract.ReasonInvalidConfiguration,
			"%s %s: %s", k.name, name, strings.Join(found.errors, "; "))
		refused.UnknownManifests = found.unknownManifests
		return choice{}, refused
	}
	return choice{known: true, name: name, configuration: found}, nil
}

func names(configs []addonv1beta1.ConfigSpecHash) []string {
	var all []string
	for _, config := range configs {
		all = append(all, NameOf(config.ConfigReferent))
	}
	return all
}
