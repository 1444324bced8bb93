package uninstall

import (
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxNames is how many clusters a progress message names.
const maxNames = 10

// observed is the part of the hub's state that decides on the next step.
type observed struct {
	// definition is nil if it does not exist any more.
	definition *addonv1beta1.ClusterManagementAddOn

	// addons are the ManagedClusterAddOns of this addon, one per cluster.
	addons []addonv1beta1.ManagedClusterAddOn

	// profiles are the marked profiles that are not being deleted.
	profiles []metav1.PartialObjectMetadata

	// grants are the namespaces in which the manager still has a RoleBinding for
	// reading tokens or maintaining copies.
	grants []string
}

// step is what to do now. The zero step means that nothing is left to do.
type step struct {
	// declare sets the definition's install strategy to Manual and writes keep to
	// its annotation.
	declare bool
	keep    bool

	deleteAddons   []addonv1beta1.ManagedClusterAddOn
	deleteProfiles []metav1.PartialObjectMetadata
	unmarkProfiles []metav1.PartialObjectMetadata

	// waitingFor says what is not done yet, for a progress message.
	waitingFor string
}

func (s step) done() bool { return s.waitingFor == "" }

// next returns the next step.
func next(o observed, keepProfiles bool) step {
	keep := keepProfiles || saysKeep(o.definition) || slices.ContainsFunc(o.addons, heldByUpstream)
	switch {
	case o.definition != nil && (!isManual(o.definition) || saysKeep(o.definition) != keep):
		return step{declare: true, keep: keep, waitingFor: "the install strategy to become Manual"}
	case keep && len(unconfirmed(o.addons)) > 0:
		return step{waitingFor: "the manager to confirm that it keeps the profiles of " + names(unconfirmed(o.addons))}
	case len(o.addons) > 0:
		return step{deleteAddons: notDeleting(o.addons), waitingFor: "the addon to be removed from " + names(o.addons)}
	case len(o.profiles) == 0 && len(o.grants) > 0:
		return step{waitingFor: "the manager to remove copies of tokens and its RoleBindings for them, in " +
			kube.ListNames(o.grants, maxNames)}
	case len(o.profiles) == 0:
		return step{}
	case keep:
		waitingFor := fmt.Sprintf("%d ClusterProfiles to be released", len(o.profiles))
		return step{unmarkProfiles: o.profiles, waitingFor: waitingFor}
	default:
		waitingFor := fmt.Sprintf("%d ClusterProfiles to be deleted", len(o.profiles))
		return step{deleteProfiles: o.profiles, waitingFor: waitingFor}
	}
}

func isManual(definition *addonv1beta1.ClusterManagementAddOn) bool {
	strategy := definition.Spec.InstallStrategy
	return strategy.Type == addonv1beta1.AddonInstallStrategyManual && len(strategy.Placements) == 0
}

func saysKeep(definition *addonv1beta1.ClusterManagementAddOn) bool {
	return definition != nil && definition.Annotations[contract.AnnotationKeepProfiles] == "true"
}

// heldByUpstream reports whether the manager leaves the cluster's profiles alone
// because of OCM's own ClusterProfile gate.
func heldByUpstream(addon addonv1beta1.ManagedClusterAddOn) bool {
	reason := profilesReason(addon)
	return reason == contract.ReasonUpstreamGateOn || reason == contract.ReasonUpstreamGateUnknown
}

// unconfirmed returns the addons not being deleted on which the manager has not
// yet reported that it keeps the profiles, or that the hub cannot have any.
func unconfirmed(addons []addonv1beta1.ManagedClusterAddOn) []addonv1beta1.ManagedClusterAddOn {
	return slices.DeleteFunc(notDeleting(addons), func(addon addonv1beta1.ManagedClusterAddOn) bool {
		switch profilesReason(addon) {
		case contract.ReasonProfilesKept, contract.ReasonProfileAPIMissing:
			return true
		default:
			return heldByUpstream(addon)
		}
	})
}

func profilesReason(addon addonv1beta1.ManagedClusterAddOn) string {
	condition := apimeta.FindStatusCondition(addon.Status.Conditions, contract.ConditionProfilesSynced)
	if condition == nil {
		return ""
	}
	return condition.Reason
}

func notDeleting(addons []addonv1beta1.ManagedClusterAddOn) []addonv1beta1.ManagedClusterAddOn {
	return slices.DeleteFunc(slices.Clone(addons), func(addon addonv1beta1.ManagedClusterAddOn) bool {
		return !addon.DeletionTimestamp.IsZero()
	})
}

func names(addons []addonv1beta1.ManagedClusterAddOn) string {
	clusters := make([]string, 0, len(addons))
	for _, addon := range addons {
		clusters = append(clusters, addon.Namespace)
	}
	slices.Sort(clusters)
	return kube.ListNames(clusters, maxNames)
}
