package inventory

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	clustersdkv1beta2 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
)

// observed is what the caches say of one pair of namespace and cluster.
type observed struct {
	// unserved are the resources the rule rests on that the hub does not
	// serve: what their caches hold is no answer.
	unserved []string

	// profileAPI is true when the hub serves ClusterProfiles.
	profileAPI bool

	profile   *inventoryv1alpha1.ClusterProfile // nil when there is none
	namespace *metav1.PartialObjectMetadata     // nil when there is none
	cluster   *clusterv1.ManagedCluster         // nil when there is none
	addon     *addonv1beta1.ManagedClusterAddOn // nil when there is none

	access access.Decision

	bindings   []observedBinding   // of the namespace, by name
	placements []observedPlacement // of the namespace, labelled for publishing, by name
}

type observedBinding struct {
	binding *clusterv1beta2.ManagedClusterSetBinding
	set     *clusterv1beta2.ManagedClusterSet // nil when there is none
}

type observedPlacement struct {
	placement *clusterv1beta1.Placement

	// decides is true when some slice of the Placement's decisions names the
	// cluster.
	decides bool

	// decisions is how many clusters all slices name.
	decisions int

	// slices and newest (a resource version) tell one state of the slices from
	// another.
	slices int
	newest string
}

// selection is what the rule says of a pair, and why.
type selection struct {
	answer Answer

	// why says in a fragment of a sentence about the cluster what withholds its
	// profile or keeps the answer from being known. Empty for yes.
	why string

	// bindings are the names of those whose set selects the cluster or may. With
	// none of them nobody expects a profile.
	bindings []string

	// member is true when some binding's set is known to select the cluster.
	member bool

	// undecided are the names of the Placements that keep the answer from being
	// known.
	undecided []string

	// byPlacement is true when nothing but the absence of the cluster from
	// Placements' decisions is known to speak against a profile.
	byPlacement bool
}

// selectPair applies the rule: a profile exists for a cluster in the inventory,
// in a namespace with a bound and publishing set binding that selects it, if the
// namespace's publishing Placements agree.
func selectPair(o observed) selection {
	var s selection
	s.bindings, s.member = interestedBindings(o)
	if len(o.unserved) > 0 {
		s.why = "the hub does not serve " + strings.Join(o.unserved, ", ")
		return s
	}
	inInventory, whyNot := inventoryAnswer(o.cluster, o.addon)
	if inInventory == No {
		s.answer, s.why = No, whyNot
		return s
	}
	bound, whyUnbound := bindingsAnswer(o.bindings, o.cluster)
	if bound == No {
		s.answer, s.why = No, whyUnbound
		return s
	}
	placed, whyUnplaced, undecided := placementsAnswer(o)
	if placed == No {
		s.answer, s.why = No, whyUnplaced
		s.byPlacement = len(o.placements) > 0
		return s
	}
	switch {
	case bound == Unknown:
		s.why = whyUnbound
	case placed == Unknown:
		s.why, s.undecided = whyUnplaced, undecided
	default:
		s.answer = Yes
	}
	return s
}

// inventoryAnswer tells whether a cluster is in the inventory. A synced cache
// without the cluster or its addon is an answer.
func inventoryAnswer(cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn) (Answer, string) {
	switch {
	case cluster == nil:
		return No, "is no ManagedCluster"
	case cluster.DeletionTimestamp != nil:
		return No, "is being detached from the hub"
	case !cluster.Spec.HubAcceptsClient:
		return No, "is not accepted by the hub (spec.hubAcceptsClient)"
	case addon == nil:
		return No, "does not have the addon " + contract.AddonName
	case addon.DeletionTimestamp != nil:
		return No, "is having the addon " + contract.AddonName + " removed"
	default:
		return Yes, ""
	}
}

// bindingsAnswer is the union over the namespace's bindings.
func bindingsAnswer(bindings []observedBinding, cluster *clusterv1.ManagedCluster) (Answer, string) {
	union, why := No, "is in no ManagedClusterSet that is bound and published here"
	for _, b := range bindings {
		one, whyOne := bindingAnswer(b, cluster)
		switch {
		case one == Yes:
			return Yes, ""
		case one == Unknown && union == No:
			union, why = Unknown, whyOne
		}
	}
	return union, why
}

func bindingAnswer(b observedBinding, cluster *clusterv1.ManagedCluster) (Answer, string) {
	if b.binding.Labels[contract.LabelPublish] == "false" || b.binding.DeletionTimestamp != nil {
		return No, ""
	}
	bound := meta.FindStatusCondition(b.binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
	if bound != nil && bound.Status == metav1.ConditionFalse {
		return No, ""
	}
	selects, why := setAnswer(b, cluster)
	if selects == No {
		return No, ""
	}
	if bound == nil || bound.Status != metav1.ConditionTrue {
		return Unknown, fmt.Sprintf("cannot be selected yet: ManagedClusterSetBinding %q has not been found bound or unbound", b.binding.Name)
	}
	return selects, why
}

// setAnswer tells whether the bound set selects the cluster. A set that is not
// there, or whose selector cannot be understood, may select anything.
func setAnswer(b observedBinding, cluster *clusterv1.ManagedCluster) (Answer, string) {
	if b.set == nil {
		return Unknown, fmt.Sprintf("cannot be selected: ManagedClusterSet %q is not there", b.binding.Spec.ClusterSet)
	}
	selector, err := setSelector(b.set)
	switch {
	case err != nil:
		return Unknown, fmt.Sprintf("cannot be selected: the selector of ManagedClusterSet %q is invalid: %v", b.set.Name, err)
	case cluster != nil && selector.Matches(labels.Set(cluster.Labels)):
		return Yes, ""
	default:
		return No, ""
	}
}

// setSelector returns the selector of one set. OCM's helper for that judges one
// set at a time and returns its error, which is what is needed; those that go
// through all sets give up on the first invalid one.
func setSelector(set *clusterv1beta2.ManagedClusterSet) (labels.Selector, error) {
	return clustersdkv1beta2.BuildClusterSelector(set)
}

// interestedBindings names the bindings because of which somebody may ask where
// the profile is, and tells whether the set of one of them is known to select the
// cluster.
func interestedBindings(o observed) (names []string, member bool) {
	for _, b := range o.bindings {
		selects, _ := setAnswer(b, o.cluster)
		if selects == No || b.binding.Labels[contract.LabelPublish] == "false" {
			continue
		}
		names = append(names, b.binding.Name)
		member = member || selects == Yes
	}
	return names, member
}

// placementsAnswer is the union over the namespace's publishing Placements.
func placementsAnswer(o observed) (a Answer, why string, undecided []string) {
	if o.namespace == nil {
		return Unknown, "cannot be published: the Namespace has not been seen yet", nil
	}
	if len(o.placements) == 0 {
		if requiresPlacement(o.namespace) {
			return No, "is withheld: the Namespace requires a Placement labelled " + contract.LabelPublish + "=true and has none", nil
		}
		return Yes, "", nil
	}
	var reasons []string
	for _, p := range o.placements {
		if p.decides {
			return Yes, "", nil
		}
		if reason := undecidedReason(p); reason != "" {
			undecided = append(undecided, p.placement.Name)
			reasons = append(reasons, fmt.Sprintf("Placement %q %s", p.placement.Name, reason))
		}
	}
	if len(undecided) > 0 {
		return Unknown, "is not decided for yet: " + strings.Join(reasons, "; "), undecided
	}
	return No, "is not chosen by a Placement labelled " + contract.LabelPublish + "=true", nil
}

// undecidedReason says why the absence of a cluster from a Placement's decisions
// means nothing yet, or "" if it does mean something.
func undecidedReason(p observedPlacement) string {
	conditions := p.placement.Status.Conditions
	switch {
	case meta.FindStatusCondition(conditions, clusterv1beta1.PlacementConditionSatisfied) == nil:
		return "has not been scheduled"
	case meta.IsStatusConditionTrue(conditions, clusterv1beta1.PlacementConditionMisconfigured):
		return "is misconfigured"
	case p.decisions != int(p.placement.Status.NumberOfSelectedClusters):
		return fmt.Sprintf("selects %d clusters but its decisions do not add up to that", p.placement.Status.NumberOfSelectedClusters)
	default:
		return ""
	}
}

func requiresPlacement(namespace *metav1.PartialObjectMetadata) bool {
	return namespace.Annotations[contract.AnnotationRequirePlacement] == "true"
}

func publishes(placement *clusterv1beta1.Placement) bool {
	return placement.Labels[contract.LabelPublish] == "true"
}

// isOurs tells whether a profile names our cluster manager.
func isOurs(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile.Spec.ClusterManager.Name == contract.ClusterManagerName
}

// isMarked tells whether a profile was created or adopted by this addon.
func isMarked(profile *inventoryv1alpha1.ClusterProfile) bool {
	return isOurs(profile) && profile.Labels[contract.LabelManagedBy] == contract.ManagedBy
}

// step is what is to be done with a pair's profile.
type step int

const (
	leave step = iota
	create
	update // adopts what has no mark
	remove
)

// nextStep decides, from the rule's answer and the profile as it is, what is to
// be done.
//
// While the answer is unknown a profile of ours stays and its content stays
// true, as long as the cluster is in the inventory; none is created, adopted or
// deleted.
func nextStep(o observed, s selection) step {
	switch {
	case o.profile == nil:
		if s.answer == Yes && !isTerminating(o.namespace) {
			return create
		}
	case !isOurs(o.profile), o.profile.DeletionTimestamp != nil, isTerminating(o.namespace):
	case s.answer == Yes:
		return update
	case !isMarked(o.profile):
	case s.answer == No:
		return remove
	default:
		if in, _ := inventoryAnswer(o.cluster, o.addon); in == Yes {
			return update
		}
	}
	return leave
}

func isTerminating(namespace *metav1.PartialObjectMetadata) bool {
	return namespace != nil && namespace.DeletionTimestamp != nil
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
