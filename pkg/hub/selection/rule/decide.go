package rule

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Observation is the state of one pair of namespace and cluster according to the caches.
// Its objects are the caches' own and must not be changed.
type Observation struct {
	Name string // of the cluster

	// Unserved names the CRDs the rule rests on that the hub does not serve: the content of
	// their caches means nothing.
	Unserved []string

	// RestoringCRDs names those that were deleted and recreated and whose objects may not
	// have been restored yet: absences from their caches mean nothing.
	RestoringCRDs []string

	// Lagging names the CRDs whose caches may have been older than this process.
	Lagging watch.Lagging

	// ProfileAPI is true when the hub serves ClusterProfiles.
	ProfileAPI bool

	// Each of these is nil if it does not exist.
	Profile   *inventoryv1alpha1.ClusterProfile
	Namespace *metav1.PartialObjectMetadata
	Cluster   *clusterv1.ManagedCluster
	Addon     *addonv1beta1.ManagedClusterAddOn

	// ExclusiveSetsOnly is true if the administrator publishes only through exclusive sets.
	ExclusiveSetsOnly bool

	Bindings   []Binding           // of the namespace, by name
	Placements []ObservedPlacement // of the namespace, labelled for publishing, by name

	// Lost names Placements that published and vanished, while it is not certain that a user
	// deleted them.
	Lost []string

	// AssumesAddon leaves out of account that the addon is absent.
	AssumesAddon bool
}

// InInventory reports whether the cluster is in the inventory, regardless of what the
// namespace selects.
func (o Observation) InInventory() bool {
	accepted, _ := clusterAnswer(o.Cluster)
	installed, _ := addonAnswer(o.Addon)
	return accepted == Yes && installed == Yes
}

// Restoring reports whether a CRD that the rule depends on was recreated, and its objects
// may not have been restored yet.
func (o Observation) Restoring() bool { return len(o.RestoringCRDs) > 0 }

// ObservedPlacement is a Placement that publishes, and what its decisions say about the cluster.
type ObservedPlacement struct {
	Placement *clusterv1beta1.Placement

	// Decides is true if some slice of the Placement's decisions contains the cluster.
	Decides bool

	Summary Summary
}

func (p ObservedPlacement) key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Placement.Namespace, Name: p.Placement.Name}
}

// Pair applies the rule: a profile exists for a cluster of the inventory in a
// namespace with a bound and publishing set binding that selects it, if the
// namespace's publishing Placements agree.
func Pair(o Observation) Result {
	r := decideAll(o)
	if r.Untrusted && isUnbound(o) {
		return Result{Bindings: r.Bindings, Member: r.Member}.deny(o, whyNotBound, BindingCRD)
	}
	return r
}

// isUnbound reports whether no binding of the namespace publishes anything, regardless of its
// set. Then no other kind matters, served or not.
func isUnbound(o Observation) bool {
	return !slices.Contains(o.Unserved, BindingCRD) && !slices.ContainsFunc(o.Bindings, Binding.mayPublish)
}

func decideAll(o Observation) Result {
	var r Result
	r.Bindings, r.Member = interestedBindings(o)
	if len(o.Unserved) > 0 {
		r.Why, r.Untrusted = "the hub does not serve "+strings.Join(o.Unserved, ", "), true
		return r
	}
	if accepted, whyNot := clusterAnswer(o.Cluster); accepted == No {
		if o.Cluster != nil && o.Cluster.DeletionTimestamp != nil {
			return r.denyGoing(whyNot, ClusterCRD)
		}
		return r.deny(o, whyNot, ClusterCRD)
	}
	// OCM removes addons of clusters that vanish, so the absence of an addon rests on both.
	if installed, whyNot := addonAnswer(o.Addon); installed == No && !o.AssumesAddon {
		r.ByAddon = true
		if o.Addon != nil {
			return r.denyGoing(whyNot, ClusterCRD, AddonCRD)
		}
		return r.deny(o, whyNot, ClusterCRD, AddonCRD)
	}
	// OCM unbinds a binding whose set is missing.
	bound, why, bySetType := bindingsAnswer(o)
	if bound == No {
		r.BySetType = bySetType
		return r.deny(o, why, unboundCRDs(o.Bindings, SetCRD, ClusterCRD)...)
	}
	// OCM decides among the existing clusters of the bound sets.
	placed, whyUnplaced, undecided := placementsAnswer(o)
	if placed == No {
		r.ByPlacement = len(o.Placements) > 0 || len(o.Lost) > 0
		if len(o.Placements) == 0 {
			return r.deny(o, whyUnplaced, PlacementCRD)
		}
		return r.deny(o, whyUnplaced, PlacementCRD, DecisionCRD, BindingCRD, SetCRD, ClusterCRD)
	}
	switch {
	case bound == Unknown:
		r.Why = why
	case placed == Unknown:
		r.Why, r.Undecided = whyUnplaced, undecided
	case len(o.Placements) == 0 && slices.Contains(o.RestoringCRDs, PlacementCRD):
		r.Why = whyDoubtful(PlacementCRD)
	default:
		r.Answer = Yes
		if len(o.Placements) == 0 && len(o.Lost) > 0 {
			r.Rests = []string{PlacementCRD}
		}
	}
	r.Untrusted = r.Answer == Unknown && o.Restoring()
	return r
}

// deny makes the answer No, unless objects of one of the CRDs it rests on may be about to
// be restored.
func (r Result) deny(o Observation, why string, crds ...string) Result {
	for _, crd := range crds {
		if slices.Contains(o.RestoringCRDs, crd) {
			return r.Doubt(crd)
		}
	}
	r.Answer, r.Why, r.Rests = No, why, crds
	return r
}

// denyGoing makes the answer No because an object of the last CRD is being deleted. Objects that are yet
// to be restored would not change that.
func (r Result) denyGoing(why string, crds ...string) Result {
	r.Answer, r.Why, r.Rests, r.Going = No, why, crds, true
	return r
}

// Doubt makes the answer Unknown because of a CRD.
func (r Result) Doubt(crd string) Result {
	return Result{Why: whyDoubtful(crd), Untrusted: true, Bindings: r.Bindings, Member: r.Member}
}

func whyDoubtful(crd string) string {
	const format = "is left as it is: the CustomResourceDefinition %s is being deleted, missing or new, " +
		"so missing objects may come back"
	return fmt.Sprintf(format, crd)
}

// clusterAnswer says whether a cluster may be in the inventory. If a synced cache lacks it, the answer is
// No, not Unknown; so it is for the addon.
func clusterAnswer(cluster *clusterv1.ManagedCluster) (Answer, string) {
	switch {
	case cluster == nil:
		return No, "is not a ManagedCluster"
	case cluster.DeletionTimestamp != nil:
		return No, "is being detached from the hub"
	case !cluster.Spec.HubAcceptsClient:
		return No, "is not accepted by the hub (spec.hubAcceptsClient)"
	default:
		return Yes, ""
	}
}

func addonAnswer(addon *addonv1beta1.ManagedClusterAddOn) (Answer, string) {
	switch {
	case addon == nil:
		return No, "does not have the addon " + contract.AddonName
	case addon.DeletionTimestamp != nil:
		return No, "is losing the addon " + contract.AddonName
	default:
		return Yes, ""
	}
}

const whyNotBound = "is in no ManagedClusterSet that is bound and published here"

// bindingsAnswer is the union over the namespace's bindings. bySetType is true if the answer
// is only No because a set is not exclusive.
func bindingsAnswer(o Observation) (union Answer, why string, bySetType bool) {
	union, why = No, whyNotBound
	for _, b := range o.Bindings {
		one, whyOne := bindingAnswer(b, o.Cluster)
		switch {
		case one == No:
		case o.isWithheld(b):
			if union == No {
				why, bySetType = whyNotExclusive(b.Set.Name), true
			}
		case one == Yes:
			return Yes, "", false
		case union == No:
			union, why, bySetType = Unknown, whyOne, false
		}
	}
	return union, why, bySetType
}

// isWithheld reports whether a bound set publishes nothing because of its type. One that does
// not exist may be exclusive.
func (o Observation) isWithheld(b Binding) bool {
	return o.ExclusiveSetsOnly && b.Set != nil && !IsExclusive(b.Set)
}

func whyNotExclusive(set string) string {
	const format = "is withheld: ManagedClusterSet %q is not exclusive, " +
		"and the manager publishes only through exclusive ones"
	return fmt.Sprintf(format, set)
}

// unboundCRDs names the CRDs on which it rests that no binding publishes the cluster. The
// others matter only where a binding may publish something.
func unboundCRDs(bindings []Binding, others ...string) []string {
	if slices.ContainsFunc(bindings, Binding.mayPublish) {
		return append([]string{BindingCRD}, others...)
	}
	return []string{BindingCRD}
}

// mayPublish is false if the binding publishes nothing, regardless of its set.
func (b Binding) mayPublish() bool {
	return b.Binding.Labels[contract.LabelPublish] != "false" && b.Binding.DeletionTimestamp == nil
}

func bindingAnswer(b Binding, cluster *clusterv1.ManagedCluster) (Answer, string) {
	bound, whyUnbound := boundAnswer(b.Binding)
	selects, why := setAnswer(b, cluster)
	switch {
	case bound == No, selects == No:
		return No, ""
	case bound == Unknown:
		return Unknown, whyUnbound
	default:
		return selects, why
	}
}

// boundAnswer says whether a binding publishes the clusters of its set.
func boundAnswer(binding *clusterv1beta2.ManagedClusterSetBinding) (Answer, string) {
	bound := kube.StatusOf(binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
	switch {
	case binding.Labels[contract.LabelPublish] == "false":
		return No, fmt.Sprintf("ManagedClusterSetBinding %q is labeled %s=false", binding.Name, contract.LabelPublish)
	case binding.DeletionTimestamp != nil:
		return No, fmt.Sprintf("ManagedClusterSetBinding %q is being deleted", binding.Name)
	case bound == metav1.ConditionFalse:
		return No, fmt.Sprintf("ManagedClusterSetBinding %q is not bound", binding.Name)
	case bound != metav1.ConditionTrue:
		const format = "cannot be selected yet: the condition Bound of ManagedClusterSetBinding %q is unknown"
		return Unknown, fmt.Sprintf(format, binding.Name)
	default:
		return Yes, ""
	}
}

// setAnswer says whether the bound set selects the cluster. A missing set, or one with an
// invalid selector, may select anything.
func setAnswer(b Binding, cluster *clusterv1.ManagedCluster) (Answer, string) {
	if b.Set == nil {
		return Unknown, fmt.Sprintf("cannot be selected: ManagedClusterSet %q does not exist", b.Binding.Spec.ClusterSet)
	}
	selector, err := SetSelector(b.Set)
	switch {
	case err != nil:
		const format = "cannot be selected: the selector of ManagedClusterSet %q is invalid: %v"
		return Unknown, fmt.Sprintf(format, b.Set.Name, err)
	case cluster != nil && selector.Matches(labels.Set(cluster.Labels)):
		return Yes, ""
	default:
		return No, ""
	}
}

// interestedBindings names the bindings because of which a consumer may expect a profile, and
// reports whether the set of one of them is known to select the cluster.
func interestedBindings(o Observation) (names []string, member bool) {
	for _, b := range o.Bindings {
		selects, _ := setAnswer(b, o.Cluster)
		if selects == No || b.Binding.Labels[contract.LabelPublish] == "false" {
			continue
		}
		names = append(names, b.Binding.Name)
		member = member || selects == Yes
	}
	return names, member
}

// maxReasons bounds how many Placements an answer explains: each pair of a namespace keeps
// the text, and a tenant may create thousands of Placements there.
const maxReasons = 5

// placementsAnswer is the union over the namespace's publishing Placements.
func placementsAnswer(o Observation) (a Answer, why string, undecided []string) {
	if o.Namespace == nil {
		return Unknown, "cannot be published: the Namespace has not been seen yet", nil
	}
	if len(o.Placements) == 0 {
		if requiresPlacement(o.Namespace) {
			why := "is withheld: the Namespace requires a Placement labeled " + contract.LabelPublish + "=true and has none"
			return No, why, nil
		}
		return Yes, "", nil
	}
	var reasons []string
	for _, p := range o.Placements {
		if p.Decides {
			return Yes, "", nil
		}
		if reason := UndecidedAbout(p, o.Name); reason != "" {
			undecided = append(undecided, p.Placement.Name)
			if len(reasons) < maxReasons {
				reasons = append(reasons, fmt.Sprintf("Placement %q %s", p.Placement.Name, reason))
			}
		}
	}
	if len(undecided) > 0 {
		if more := len(undecided) - len(reasons); more > 0 {
			reasons = append(reasons, fmt.Sprintf("and %d more", more))
		}
		return Unknown, "awaits a decision: " + strings.Join(reasons, "; "), undecided
	}
	return No, "is not chosen by a Placement labeled " + contract.LabelPublish + "=true", nil
}

// UndecidedAbout returns why the absence of a cluster from a Placement's decisions means
// nothing yet, or "" if it means that the cluster is not chosen, or moves. OCM writes each
// slice as a whole. So a slice that has names on both sides of the cluster's shows that the
// cluster was not chosen, even if another slice was not written, and the sum is wrong. If
// slices list clusters that are no longer selected, none has to be missing.
func UndecidedAbout(p ObservedPlacement, cluster string) string {
	if p.spans(cluster) || p.surplus() >= 0 {
		return unscheduledReason(p)
	}
	return UndecidedReason(p)
}

// UndecidedReason returns why a Placement's decisions do not say what it chooses, or "".
func UndecidedReason(p ObservedPlacement) string {
	if reason := unscheduledReason(p); reason != "" || p.surplus() == 0 {
		return reason
	}
	// Without numbers, which change with each slice and would have the conditions of all clusters written.
	return "selects another number of clusters than its decisions list"
}

func unscheduledReason(p ObservedPlacement) string {
	conditions := p.Placement.Status.Conditions
	switch {
	case meta.FindStatusCondition(conditions, clusterv1beta1.PlacementConditionSatisfied) == nil:
		return "has not been scheduled"
	case meta.IsStatusConditionTrue(conditions, clusterv1beta1.PlacementConditionMisconfigured):
		return "is misconfigured"
	default:
		return ""
	}
}

// surplus returns how many clusters more a Placement's decisions list than it selects.
func (p ObservedPlacement) surplus() int {
	return p.Summary.decisions - int(p.Placement.Status.NumberOfSelectedClusters)
}
