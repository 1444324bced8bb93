package configuration

import (
	"fmt"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// decideValues returns the values of a cluster's manifests, without those that identify it:
// those of its AgentRevision, changed by its configuration and its registries.
func decideValues(revision, chosen choice, at Location) (manifests.Values, *Refusal) {
	values := revision.configuration.values
	image := values.Image
	if chosen.configuration != nil {
		values = chosen.configuration.overrides.applyTo(values)
	}
	namespace, refused := decideNamespace(revision, chosen, at)
	if refused != nil {
		return manifests.Values{}, refused
	}
	values.InstallNamespace = namespace
	if at.Host != "" {
		values = values.OnHost()
	}
	if values.Image == image { // the configuration's registries take precedence over the cluster's
		registries, wrong := validateAnnotation(at.Registries)
		if len(wrong) > 0 {
			return manifests.Values{}, refuse(contract.ReasonInvalidConfiguration,
				"ManagedCluster %s: %s", at.Cluster, strings.Join(wrong, "; "))
		}
		values.Image = mirrored(image, registries)
	}
	if values.Image != image && !isFrom(values.Image, at.Allowed) {
		return manifests.Values{}, refuse(contract.ReasonInvalidConfiguration,
			"The registries of cluster %s yield the agent's image %s, "+
				"which is from none of the registries that the chart allows (agent.allowedRegistries)",
			at.Cluster, values.Image)
	}
	return values, nil
}

// decideNamespace returns the namespace of an agent, or why it cannot run. That of a hosted
// agent is fixed: a configuration may apply to several clusters, and two agents in one
// namespace would share the Secret with their kubeconfigs for the hub. That of an
// AgentRevision, which clusters share, does not apply to it.
func decideNamespace(revision, chosen choice, at Location) (string, *Refusal) {
	wanted := revision.configuration.values.InstallNamespace
	source := fmt.Sprintf("AgentRevision %s: spec.installNamespace", revision.name)
	named := chosen.configuration != nil && chosen.configuration.overrides.installNamespace != ""
	if named {
		wanted = chosen.configuration.overrides.installNamespace
		source = fmt.Sprintf("AddOnDeploymentConfig %s: spec.agentInstallNamespace", chosen.name)
	}
	if at.Host != "" {
		return at.namespaceOnHost(revision.configuration.values.Manifests, named, wanted, source)
	}
	runs := at.Namespace()
	if runs != "" && runs != wanted {
		return "", refuse(contract.ReasonInstallNamespaceChanged,
			"%s is %s, but the agent runs in %s and is not moved; set it back, or disable the addon on this cluster first",
			source, wanted, runs)
	}
	if runs == "" && at.HostedIn != nil {
		if cluster := at.HostedIn(wanted); cluster != "" {
			return "", refuse(contract.ReasonInstallNamespaceTaken,
				"%s is %s, which is in use by the agent of cluster %s, which this cluster hosts; choose another namespace",
				source, wanted, cluster)
		}
	}
	return wanted, nil
}

func (at Location) namespaceOnHost(revision string, named bool, wanted, source string) (string, *Refusal) {
	own := ownwork.HostedNamespace(at.Cluster)
	switch {
	case !manifests.CanBeHosted(revision):
		return "", refuse(contract.ReasonHostingRefused,
			"The agent's manifests are of revision %s, which cannot run on a hosting cluster; it needs an AgentRevision "+
				"with manifests of a later revision", revision)
	case named && wanted != own:
		return "", refuse(contract.ReasonInstallNamespaceTaken,
			"%s is %s, which may be the namespace of another cluster's agent: on hosting cluster %s, "+
				"the agent runs in namespace %s; remove the field, or set it to that",
			source, wanted, at.Host, own)
	case at.Namespace() == "" && at.HostsOwn == own:
		return "", refuse(contract.ReasonInstallNamespaceTaken,
			"The agent's namespace %s on hosting cluster %s is in use by that cluster's own agent; "+
				"disable the addon on cluster %s, and enable it again with another install namespace",
			own, at.Host, at.Host)
	}
	return own, nil
}
