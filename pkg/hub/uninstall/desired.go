package uninstall

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxNames is how many clusters a progress message names.
const maxNames = 10

// observed is the part of the hub's state on which the next step depends.
type observed struct {
	// definition is nil if it no longer exists.
	definition *addonv1beta1.ClusterManagementAddOn

	addons addonSummary

	// gate is the state of OCM's own ClusterProfile gate.
	gate gateState

	// answered is true if the manager has confirmed for some cluster long enough ago that
	// it keeps the profiles.
	answered bool

	// profiles counts the marked profiles that are not being deleted. It matters
	// only without addons.
	profiles int

	// grants are the namespaces, sorted, in which the manager still has a RoleBinding for reading
	// tokens or maintaining copies: it deletes these after everything else that copying has left
	// behind. They matter only without profiles.
	grants []string

	// grantsStay is true if the manager does not remove these RoleBindings.
	grantsStay bool
}

// addonSummary is the part of this addon's ManagedClusterAddOns on which the next step
// depends. A hub may have more of them than fit into the hook's memory.
type addonSummary struct {
	// clusters are those that have the addon.
	clusters names

	// deleting counts those on which it is being deleted.
	deleting int

	// confirmed counts the addons not being deleted on which the manager has reported
	// that it deletes no profiles; unconfirmed are the clusters of the others.
	confirmed   int
	unconfirmed names
}

// gateState is whether OCM's own ClusterProfile gate is on, so that the profiles may belong
// to OCM's controller by now.
type gateState int

const (
	gateOff gateState = iota
	// gateOn is also what cannot be determined.
	gateOn
	// gatePending: the objects that show it are missing, perhaps only for a moment.
	gatePending
)

// add includes one more addon, with its condition ProfilesSynced.
func (s *addonSummary) add(addon *addonv1beta1.ManagedClusterAddOn) {
	s.addName(addon)
	switch {
	case !addon.DeletionTimestamp.IsZero():
	case confirmed(addon):
		s.confirmed++
	default:
		s.unconfirmed.add(addon.Namespace)
	}
}

// addName includes one more addon, known only by its metadata.
func (s *addonSummary) addName(addon metav1.Object) {
	s.clusters.add(addon.GetNamespace())
	if !addon.GetDeletionTimestamp().IsZero() {
		s.deleting++
	}
}

// names counts names and keeps the first few of them.
type names struct {
	count int
	first []string // sorted
}

func (n *names) add(name string) {
	n.count++
	at, _ := slices.BinarySearch(n.first, name)
	n.first = slices.Insert(n.first, at, name)
	n.first = n.first[:min(len(n.first), maxNames)]
}

// String lists the names as kube.ListNames does.
func (n names) String() string {
	list := strings.Join(n.first, ", ")
	if more := n.count - len(n.first); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// action is what a step does with objects, which it lists again page by page.
type action int

const (
	// nothing means that the step only waits.
	nothing action = iota
	deleteAddons
	deleteProfiles
	unmarkProfiles
)

// step is what to do now. The zero step means that nothing is left to do.
type step struct {
	// declare sets the definition's install strategy to Manual and writes keep to
	// its annotation.
	declare bool
	keep    bool

	action action

	// waitingFor describes, for a progress message, what is not done yet.
	waitingFor string

	// failure is set if a user has to do something first.
	failure error
}

// errGrantsStay is the error of RoleBindings that nothing removes.
var errGrantsStay = errors.New("with credentials.mode=disabled nothing withdraws the copies of tokens that may be left")

func (s step) done() bool { return s.waitingFor == "" }

// next returns the next step.
func next(o observed, keepProfiles bool) step {
	keep := keeps(o, keepProfiles)
	clusters := o.addons.clusters
	switch {
	case o.grantsStay && len(o.grants) > 0:
		return step{failure: fmt.Errorf("%w in %s: delete the Secrets there that are labeled %s=true, and then the "+
			"RoleBindings with that label", errGrantsStay, kube.ListNames(o.grants, maxNames), contract.LabelCredential)}
	case o.gate == gatePending && !keep:
		return step{waitingFor: "the ClusterRole of OCM's registration controller, " +
			"which tells whether OCM's own ClusterProfile feature gate is on"}
	case o.definition != nil && (!isManual(o.definition) || saysKeep(o.definition) != keep):
		return step{declare: true, keep: keep, waitingFor: "the install strategy to become Manual"}
	case keep && !o.answered && o.addons.unconfirmed.count > 0:
		return step{waitingFor: "the manager to confirm that it keeps the profiles of " + o.addons.unconfirmed.String()}
	case clusters.count > o.addons.deleting:
		return step{action: deleteAddons, waitingFor: "the addon to be removed from " + clusters.String()}
	case clusters.count > 0:
		return step{waitingFor: "the addon to be removed from " + clusters.String()}
	case o.profiles == 0 && len(o.grants) > 0:
		return step{waitingFor: "the manager to remove copies of tokens and its RoleBindings for them, in " +
			kube.ListNames(o.grants, maxNames)}
	case o.profiles == 0:
		return step{}
	case keep:
		return step{action: unmarkProfiles, waitingFor: fmt.Sprintf("%d ClusterProfiles to be released", o.profiles)}
	default:
		return step{action: deleteProfiles, waitingFor: fmt.Sprintf("%d ClusterProfiles to be deleted", o.profiles)}
	}
}

// keeps reports whether the profiles stay.
func keeps(o observed, keepProfiles bool) bool {
	return keepProfiles || saysKeep(o.definition) || o.gate == gateOn
}

func isManual(definition *addonv1beta1.ClusterManagementAddOn) bool {
	strategy := definition.Spec.InstallStrategy
	return strategy.Type == addonv1beta1.AddonInstallStrategyManual && len(strategy.Placements) == 0
}

func saysKeep(definition *addonv1beta1.ClusterManagementAddOn) bool {
	return definition != nil && definition.Annotations[contract.AnnotationKeepProfiles] == "true"
}

// confirmed reports whether the manager has said that it deletes none of the cluster's
// profiles: it keeps them, leaves them to OCM's own gate, or the hub cannot have any.
func confirmed(addon *addonv1beta1.ManagedClusterAddOn) bool {
	condition := apimeta.FindStatusCondition(addon.Status.Conditions, contract.ConditionProfilesSynced)
	return condition != nil && slices.Contains([]string{
		contract.ReasonProfilesKept, contract.ReasonProfileAPIMissing,
		contract.ReasonUpstreamGateOn, contract.ReasonUpstreamGateUnknown,
	}, condition.Reason)
}
