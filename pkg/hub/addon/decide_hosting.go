package addon

import (
	"cmp"
	"fmt"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// wantedHost returns the cluster on which a cluster's agent should run, empty if that is
// the cluster itself.
func wantedHost(addon *addonv1beta1.ManagedClusterAddOn) string {
	return addon.Annotations[addonv1beta1.HostingClusterNameAnnotationKey]
}

// mayMove reports whether an agent may leave its cluster for a hosting one: as long as it
// has never been available or reported anything. An addon that is installed by a Placement
// is created without the annotation, and on a cluster without nodes its agent never runs.
// That an agent is unavailable now means nothing: it may be unreachable.
func mayMove(addon *addonv1beta1.ManagedClusterAddOn, runs string) bool {
	wanted := wantedHost(addon)
	return runs == "" && wanted != "" && wanted != addon.Namespace && addon.DeletionTimestamp.IsZero() &&
		!apimeta.IsStatusConditionTrue(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable) &&
		apimeta.FindStatusCondition(addon.Status.Conditions, contract.ConditionPropertiesPublished) == nil
}

// judgeHost returns why an agent cannot run where it should, or nil. runs is the cluster
// where it runs, if it is deployed.
func judgeHost(addon *addonv1beta1.ManagedClusterAddOn, deployed bool, runs string) *refusal {
	const annotation = addonv1beta1.HostingClusterNameAnnotationKey
	wanted := wantedHost(addon)
	switch {
	case wanted == addon.Namespace:
		return refuse(contract.ReasonHostingRefused,
			"The annotation %s is the cluster's own name; remove it, or name another cluster", annotation)
	case deployed && wanted != runs && !mayMove(addon, runs):
		message := fmt.Sprintf("The annotation %s is %q, but the agent runs on cluster %s and is not moved; "+
			"set it back, or disable the addon on this cluster first", annotation, wanted, cmp.Or(runs, addon.Namespace))
		if wanted == "" || runs == "" {
			message += ". Until then the agent has no access to the hub: " +
				"the klusterlet has moved its kubeconfig to where the annotation says"
		}
		return refuse(contract.ReasonHostingRefused, "%s", message)
	}
	return nil
}

// judgeUnhosted returns why an addon is left as it is while the manager manages no hosted
// agents, or nil: it knows neither whether the agent runs on a hosting cluster, nor whether
// it could start another one. One that is being removed is left only if something of it may
// be on a hosting cluster.
func judgeUnhosted(addon *addonv1beta1.ManagedClusterAddOn) *refusal {
	if !ownwork.IsHosted(addon) && (wantedHost(addon) == "" || !addon.DeletionTimestamp.IsZero()) {
		return nil
	}
	message := "The manager does not manage agents on hosting clusters, so it leaves this cluster's agent as it is; " +
		"set the chart's value agent.hosted.enabled to true"
	if !ownwork.IsHosted(addon) {
		message += ", or remove the annotation " + addonv1beta1.HostingClusterNameAnnotationKey
	}
	return refuse(contract.ReasonHostingDisabled, "%s", message)
}

// decideNamespace returns the namespace of an agent, or why it cannot run. That of a hosted
// agent is fixed: a configuration may apply to several clusters, and two agents in one
// namespace would share the Secret with their kubeconfigs for the hub. That of an
// AgentRevision, which clusters share, does not apply to it.
func decideNamespace(common common, chosen choice, at place) (string, *refusal) {
	wanted, source := common.InstallNamespace, fmt.Sprintf("AgentRevision %s: spec.installNamespace", common.revision)
	named := chosen.configuration != nil && chosen.configuration.overrides.installNamespace != ""
	if named {
		wanted = chosen.configuration.overrides.installNamespace
		source = fmt.Sprintf("AddOnDeploymentConfig %s: spec.agentInstallNamespace", chosen.name)
	}
	if at.host != "" {
		return at.namespaceOnHost(common, named, wanted, source)
	}
	if at.namespace != "" && at.namespace != wanted {
		return "", refuse(contract.ReasonInstallNamespaceChanged,
			"%s is %s, but the agent runs in %s and is not moved; set it back, or disable the addon on this cluster first",
			source, wanted, at.namespace)
	}
	if at.namespace == "" && at.guestOf != nil {
		if guest := at.guestOf(wanted); guest != "" {
			return "", refuse(contract.ReasonInstallNamespaceTaken,
				"%s is %s, which is in use by the agent of cluster %s, which this cluster hosts; choose another namespace",
				source, wanted, guest)
		}
	}
	return wanted, nil
}

func (at place) namespaceOnHost(common common, named bool, wanted, source string) (string, *refusal) {
	own := ownwork.HostedNamespace(at.cluster)
	switch {
	case !manifests.CanBeHosted(common.Manifests):
		return "", refuse(contract.ReasonHostingRefused,
			"The agent's manifests are of revision %s, which cannot run on a hosting cluster; it needs an AgentRevision "+
				"with manifests of a later revision", common.Manifests)
	case named && wanted != own:
		return "", refuse(contract.ReasonInstallNamespaceTaken,
			"%s is %s, which may be the namespace of another cluster's agent: on hosting cluster %s, "+
				"the agent runs in namespace %s; remove the field, or set it to that",
			source, wanted, at.host, own)
	case at.namespace == "" && at.hostsOwn == own:
		return "", refuse(contract.ReasonInstallNamespaceTaken,
			"The agent's namespace %s on hosting cluster %s is in use by that cluster's own agent; "+
				"disable the addon on cluster %s, and enable it again with another install namespace",
			own, at.host, at.host)
	}
	return own, nil
}
