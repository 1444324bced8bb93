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

// maxNames is how many clusters a line of progress names.
const maxNames = 10

// observed is what is on the hub.
type observed struct {
	// definition is nil when there is none any more.
	definition *addonv1beta1.ClusterManagementAddOn

	// addons are this addon's, one per cluster.
	addons []addonv1beta1.ManagedClusterAddOn

	// profiles are the marked ones.
	profiles []metav1.PartialObjectMetadata

	// rights are the namespaces in which the manager still has a RoleBinding of its
	// own, because there are copies of tokens, or are read.
	rights []string
}

// step is what to do now. The zero step means that nothing is left to do.
type step struct {
	// declare writes to the definition that nothing is installed any more and
	// whether profiles are kept.
	declare bool
	keep    bool

	deleteAddons   []addonv1beta1.ManagedClusterAddOn
	deleteProfiles []metav1.PartialObjectMetadata
	unmarkProfiles []metav1.PartialObjectMetadata

	// waitingFor says in words what is not done yet.
	waitingFor string
}

func (s step) done() bool { return s.waitingFor == "" }

// next decides on the next step.
func next(o observed, keepProfiles bool) step {
	keep := keepProfiles || saysKeep(o.definition) || slices.ContainsFunc(o.addons, heldByUpstream)
	switch {
	case o.definition != nil && (!isManual(o.definition) || saysKeep(o.definition) != keep):
		return step{declare: true, keep: keep, waitingFor: "the install strategy to become Manual"}
	case keep && len(unheard(o.addons)) > 0:
		return step{waitingFor: "the manager to say that it leaves the profiles alone, for " + names(unheard(o.addons))}
	case len(o.addons) > 0:
		return step{deleteAddons: standing(o.addons), waitingFor: "the addon to go from " + names(o.addons)}
	case len(o.profiles) == 0 && len(o.rights) > 0:
		return step{waitingFor: "the manager to withdraw copies of tokens and its rights to them, in " + kube.ListNames(o.rights, maxNames)}
	case len(o.profiles) == 0:
		return step{}
	case keep:
		return step{unmarkProfiles: o.profiles, waitingFor: fmt.Sprintf("%d ClusterProfiles to be let go", len(o.profiles))}
	default:
		return step{deleteProfiles: o.profiles, waitingFor: fmt.Sprintf("%d ClusterProfiles to go", len(o.profiles))}
	}
}

func isManual(definition *addonv1beta1.ClusterManagementAddOn) bool {
	strategy := definition.Spec.InstallStrategy
	return strategy.Type == addonv1beta1.AddonInstallStrategyManual && len(strategy.Placements) == 0
}

func saysKeep(definition *addonv1beta1.ClusterManagementAddOn) bool {
	return definition != nil && definition.Annotations[contract.AnnotationKeepProfiles] == "true"
}

// heldByUpstream is true where the manager leaves profiles alone because of OCM's
// own ClusterProfile gate.
func heldByUpstream(addon addonv1beta1.ManagedClusterAddOn) bool {
	reason := profilesReason(addon)
	return reason == contract.ReasonUpstreamGateOn || reason == contract.ReasonUpstreamGateUnknown
}

// unheard are the addons not being deleted on which the manager has not said yet
// that it leaves profiles alone, or that there can be none.
func unheard(addons []addonv1beta1.ManagedClusterAddOn) []addonv1beta1.ManagedClusterAddOn {
	return slices.DeleteFunc(standing(addons), func(addon addonv1beta1.ManagedClusterAddOn) bool {
		reason := profilesReason(addon)
		return reason == contract.ReasonProfilesKept || reason == contract.ReasonProfileAPIMissing || heldByUpstream(addon)
	})
}

func profilesReason(addon addonv1beta1.ManagedClusterAddOn) string {
	condition := apimeta.FindStatusCondition(addon.Status.Conditions, contract.ConditionProfilesSynced)
	if condition == nil {
		return ""
	}
	return condition.Reason
}

// standing are the addons not being deleted.
func standing(addons []addonv1beta1.ManagedClusterAddOn) []addonv1beta1.ManagedClusterAddOn {
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
