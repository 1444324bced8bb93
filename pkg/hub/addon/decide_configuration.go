package addon

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxMessageBytes bounds what is said about a configuration.
const maxMessageBytes = 1024

// configuration is an AddOnDeploymentConfig or an AgentRevision that was judged.
type configuration struct {
	// hash is that of the spec, as Open Cluster Management computes it.
	hash string

	overrides overrides // of an AddOnDeploymentConfig
	values    Values    // of an AgentRevision
	mistakes  mistakes

	// unknownManifests says that an AgentRevision is for another version of the manager.
	unknownManifests bool
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

	// unknownManifests says that it is for want of another version of the manager.
	unknownManifests bool
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
	kind := deploymentConfigKind()
	desired := kind.desired(addon)
	if len(desired) == 0 {
		return choice{known: !awaitsConfiguration(addon, definition)}, nil
	}
	return kind.choose(desired, find)
}

// awaitsConfiguration reports whether an addon without a configuration is about to get
// one. Open Cluster Management gives it some time after the addon was created, in a
// progressive rollout when the cluster's turn comes; without waiting for that, the agent
// would first be installed with other settings, and maybe in another namespace. Without a
// definition nothing tells whether there is a configuration.
func awaitsConfiguration(
	addon *addonv1beta1.ManagedClusterAddOn, definition *addonv1beta1.ClusterManagementAddOn,
) bool {
	kind := deploymentConfigKind()
	return kind.named(addon) || !isConfigured(addon) && (definition == nil || kind.offered(definition))
}

// isConfigured reports whether the addon refers to all configurations that it is to have.
// Open Cluster Management also says so of a cluster that is to have none. While a cluster
// waits for its turn, the condition is False.
func isConfigured(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return apimeta.IsStatusConditionTrue(
		addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
}

// place is where values come from that one cluster has and another may not.
type place struct {
	// cluster is the ManagedCluster's name, and registries its annotation with the
	// registries of images.
	cluster    string
	registries string

	// allowed are the registries, and repositories, from which a configuration or that
	// annotation may have the image pulled.
	allowed []string

	// namespace is that of the agent that is deployed, empty if there is none.
	namespace string

	// host is the cluster on which the agent is to run if that is another one, and hostsOwn
	// the namespace of that cluster's own agent there, if it is deployed.
	host     string
	hostsOwn string

	// guestOf returns the cluster whose agent is to run in a namespace of this one, or "".
	guestOf func(namespace string) string
}

// decideValues returns the values of a cluster's manifests, without what identifies it:
// those of all clusters, as its configuration and its registries change them.
func decideValues(common common, chosen choice, at place) (Values, *refusal) {
	values := common.Values
	if chosen.configuration != nil {
		values = values.with(chosen.configuration.overrides)
	}
	namespace, refused := decideNamespace(common, chosen, at)
	if refused != nil {
		return Values{}, refused
	}
	values.InstallNamespace = namespace
	if at.host != "" {
		values = values.hosted()
	}
	if values.Image == common.Image { // the configuration's registries come before the cluster's
		registries, wrong := judgeAnnotation(at.registries)
		if len(wrong) > 0 {
			return Values{}, refuse(contract.ReasonInvalidConfiguration,
				"ManagedCluster %s: %s", at.cluster, strings.Join(wrong, "; "))
		}
		values.Image = mirrored(common.Image, registries)
	}
	if values.Image != common.Image && !isFrom(values.Image, at.allowed) {
		return Values{}, refuse(contract.ReasonInvalidConfiguration, "The registries of cluster %s make the agent's image %s, "+
			"which is from none of the registries that the chart allows (agent.allowedRegistries)", at.cluster, values.Image)
	}
	return values, nil
}
