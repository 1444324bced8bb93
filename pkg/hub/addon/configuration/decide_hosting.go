package configuration

import (
	"cmp"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// Host returns the cluster on which a cluster's agent runs, or should run, if that is another
// one. A deployed agent stays where it is, even if the annotation has changed: the framework
// would delete its manifests on the hosting cluster without a clean-up, and then wait for one
// forever. The same applies while the deployed works are being deleted.
func Host(addon *addonv1beta1.ManagedClusterAddOn, there manifests.Deployed) string {
	switch wanted := ownwork.WantedHost(addon); {
	case there.Agent != nil && !mayMove(addon, there.Host):
		return there.Host
	case there.FormerHost != "":
		return there.FormerHost
	case wanted == addon.Namespace:
		return "" // which is refused
	default:
		return wanted
	}
}

// mayMove reports whether an agent may leave its cluster for a hosting one: while it has
// never been available or reported anything. An addon that is installed by a Placement is
// created without the annotation, and on a cluster without nodes its agent never runs. That
// an agent is unavailable now means nothing: it may be unreachable.
func mayMove(addon *addonv1beta1.ManagedClusterAddOn, runs string) bool {
	wanted := ownwork.WantedHost(addon)
	return runs == "" && wanted != "" && wanted != addon.Namespace && addon.DeletionTimestamp.IsZero() &&
		!apimeta.IsStatusConditionTrue(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable) &&
		apimeta.FindStatusCondition(addon.Status.Conditions, contract.ConditionPropertiesPublished) == nil
}

// validateHost returns why an agent cannot run where it should, or nil.
func validateHost(addon *addonv1beta1.ManagedClusterAddOn, at Location) *Refusal {
	const annotation = addonv1beta1.HostingClusterNameAnnotationKey
	wanted, runs := ownwork.WantedHost(addon), at.There.Host
	stays := at.There.Agent != nil && !mayMove(addon, runs)
	switch {
	case wanted == addon.Namespace:
		return refuse(contract.ReasonHostingRefused,
			"The annotation %s is the cluster's own name; remove it, or name another cluster", annotation)
	case stays && wanted != runs:
		message := fmt.Sprintf("The annotation %s is %q, but the agent runs on cluster %s and is not moved; "+
			"set it back, or disable the addon on this cluster first", annotation, wanted, cmp.Or(runs, addon.Namespace))
		if wanted == "" || runs == "" {
			message += ". Until then the agent has no access to the hub: " +
				"the klusterlet has moved its kubeconfig to where the annotation says"
		}
		return refuse(contract.ReasonHostingRefused, "%s", message)
	case !stays && at.HostsHost != "":
		return refuse(contract.ReasonHostingRefused,
			"Cluster %s cannot host the agent: its own agent runs on cluster %s; name another cluster in the annotation %s",
			wanted, at.HostsHost, annotation)
	}
	return nil
}

// ValidateUnhosted returns why an addon is left as it is while the manager manages no hosted
// agents, or nil: it knows neither whether the agent runs on a hosting cluster, nor whether
// it could start another one. One that is being removed is left only if something of it may
// be on a hosting cluster.
func ValidateUnhosted(addon *addonv1beta1.ManagedClusterAddOn) *Refusal {
	if !ownwork.IsHosted(addon) && (ownwork.WantedHost(addon) == "" || !addon.DeletionTimestamp.IsZero()) {
		return nil
	}
	message := "The manager does not manage agents on hosting clusters, so it leaves this cluster's agent as it is; " +
		"set the chart's value agent.hosted.enabled to true"
	if !ownwork.IsHosted(addon) {
		message += ", or remove the annotation " + addonv1beta1.HostingClusterNameAnnotationKey
	}
	return refuse(contract.ReasonHostingDisabled, "%s", message)
}
