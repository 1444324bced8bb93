package orders

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// answer is what must be so for a pair.
type answer string

const (
	yes     answer = "Yes"
	no      answer = "No"
	unknown answer = "Unknown"
)

// truth is the answer for a pair, as the hub is. A cluster that is moving between slices is chosen, for as
// long as that may take.
func (s *State) truth(pair types.NamespacedName) answer {
	answer := s.onHub().answer(pair)
	if answer == no && s.moving[pair] && s.passed < longestMove {
		return unknown
	}
	return answer
}

// longestMove is how long a cluster may be in no slice, or without the addon, although it is chosen.
const longestMove = 2 * time.Minute

// shown is the answer for a pair, as the caches are.
func (s *State) shown(pair types.NamespacedName) answer { return s.inCaches().answer(pair) }

// facts are what the rule is about, as the hub or the caches are.
type facts struct {
	all         *[kinds]store
	definitions []string // that can be deleted

	// passed is how long the world has existed.
	passed time.Duration

	exclusiveOnly bool
}

func (s *State) onHub() facts { return facts{&s.hub, s.definitions, s.passed, s.exclusiveOnly} }

func (s *State) inCaches() facts { return facts{&s.cached, s.definitions, s.passed, s.exclusiveOnly} }

// served reports whether all CRDs are on which the rule rests.
func (f facts) served() bool {
	return !slices.ContainsFunc(selection.CRDs(), func(name string) bool { return !f.isServed(name) })
}

// MayRestore reports whether a CRD does not exist on the hub, or objects of it may be about to be restored.
func (s *State) MayRestore(definition string) bool {
	hub := s.onHub()
	return !hub.isServed(definition) || hub.doubts(definition)
}

func (f facts) isServed(definition string) bool {
	crd := f.all[Definitions][Named("", definition)]
	return crd == nil && !slices.Contains(f.definitions, definition) || crd != nil && crd.GetDeletionTimestamp() == nil
}

// doubts reports whether objects of one of some CRDs may be about to be restored: it was recreated, and for
// a minute nothing has been added.
func (f facts) doubts(definitions ...string) bool {
	isNew := slices.ContainsFunc(definitions, func(name string) bool {
		crd := f.all[Definitions][Named("", name)]
		return crd != nil && !crd.GetCreationTimestamp().Time.Equal(long)
	})
	if !isNew {
		return false
	}
	var newest time.Time
	for kind := range kinds {
		for _, obj := range f.all[kind] {
			if created := obj.GetCreationTimestamp().Time; kind != Profiles && kind != Copies && created.After(newest) {
				newest = created
			}
		}
	}
	return noon.Add(f.passed).Before(newest.Add(time.Minute))
}

// Entitled reports whether the truth has said Yes about a pair since the caches last showed
// all of it, and Denied whether it has said No.
func (s *State) Entitled(pair types.NamespacedName) bool { return s.seen[pair].yes }

// Denied is the opposite of Entitled, and may hold at the same time.
func (s *State) Denied(pair types.NamespacedName) bool { return s.seen[pair].no }

// answer applies the rule of docs/architecture.md, as shortly as it can be said. It knows
// only what the small world has.
func (f facts) answer(pair types.NamespacedName) answer {
	all3 := []answer{f.inventoried(pair.Name), f.bound(pair), f.placed(pair)}
	namespace := f.all[Namespaces][Named("", pair.Namespace)]
	switch {
	case namespace != nil && namespace.GetDeletionTimestamp() != nil: // which deletes everything in it
		return unknown
	case f.unless(no, rule.BindingCRD) == no && !f.mayBePublished(pair.Namespace):
		return no
	case !f.served():
		return unknown
	case slices.Contains(all3, no):
		return no
	case slices.Contains(all3, unknown):
		return unknown
	default:
		return yes
	}
}

// denies reports whether kinds that can be trusted deny a pair, although others cannot be.
func (f facts) denies(pair types.NamespacedName) bool {
	return slices.Contains([]answer{f.inventoried(pair.Name), f.bound(pair), f.placed(pair)}, no)
}

// unless is an answer that missing objects of some CRDs would change.
func (f facts) unless(answer answer, definitions ...string) answer {
	if f.doubts(definitions...) {
		return unknown
	}
	return f.whileServed(answer, definitions...)
}

// Trusted reports whether the caches show all that exists, going by their CRDs.
func (s *State) Trusted() bool {
	shown := s.inCaches()
	return shown.served() && !shown.doubts(selection.CRDs()...)
}

// whileServed is an answer because of objects of some CRDs.
func (f facts) whileServed(answer answer, definitions ...string) answer {
	if slices.ContainsFunc(definitions, func(name string) bool { return !f.isServed(name) }) {
		return unknown
	}
	return answer
}

func (f facts) inventoried(name string) answer {
	cluster, addon := f.all[Clusters][Named("", name)], f.all[Addons][Named(name, contract.AddonName)]
	switch {
	case cluster == nil:
		return f.unless(no, rule.ClusterCRD)
	case cluster.GetDeletionTimestamp() != nil:
		return f.whileServed(no, rule.ClusterCRD)
	case !cluster.Object.(*clusterv1.ManagedCluster).Spec.HubAcceptsClient:
		return f.unless(no, rule.ClusterCRD) // its klusterlet may have just registered again
	case addon != nil && addon.GetDeletionTimestamp() == nil:
		return yes
	case f.passed < longestMove && f.installs(name):
		return unknown
	case addon != nil:
		return f.whileServed(no, rule.ClusterCRD, rule.AddonCRD)
	default:
		return f.unless(no, rule.ClusterCRD, rule.AddonCRD)
	}
}

// installs reports whether a slice of the install strategy's Placement names a cluster, or one of them is
// not written yet.
func (f facts) installs(name string) bool {
	definition := f.all[Installs][Named("", contract.AddonName)]
	if definition == nil || definition.GetDeletionTimestamp() != nil {
		return false
	}
	for _, p := range definition.Object.(*addonv1beta1.ClusterManagementAddOn).Spec.InstallStrategy.Placements {
		placement, listed := f.all[Placements][Named(p.Namespace, p.Name)], f.slices(Named(p.Namespace, p.Name))
		if placement != nil && (slices.Contains(listed, name) ||
			len(listed) < int(placement.Object.(*clusterv1beta1.Placement).Status.NumberOfSelectedClusters)) {
			return true
		}
	}
	return false
}

// slices returns what all slices of a Placement list.
func (f facts) slices(placement types.NamespacedName) (clusters []string) {
	for key, slice := range f.all[Decisions] {
		if key.Namespace == placement.Namespace && slice.GetLabels()[clusterv1beta1.PlacementLabel] == placement.Name {
			for _, d := range slice.Object.(*clusterv1beta1.PlacementDecision).Status.Decisions {
				clusters = append(clusters, d.ClusterName)
			}
		}
	}
	return clusters
}

func (f facts) bound(pair types.NamespacedName) answer {
	best := f.unless(no, rule.BindingCRD)
	if f.mayBePublished(pair.Namespace) {
		best = f.unless(no, rule.BindingCRD, rule.SetCRD, rule.ClusterCRD)
	}
	for key, obj := range f.all[Bindings] {
		if key.Namespace != pair.Namespace {
			continue
		}
		switch f.boundBy(obj.Object.(*clusterv1beta2.ManagedClusterSetBinding), pair.Name) {
		case yes:
			return yes
		case unknown:
			best = unknown
		}
	}
	return best
}

// mayBePublished reports whether any binding of a namespace publishes, whatever its set.
func (f facts) mayBePublished(namespace string) bool {
	for key, binding := range f.all[Bindings] {
		if key.Namespace == namespace && binding.GetLabels()[contract.LabelPublish] != "false" &&
			binding.GetDeletionTimestamp() == nil {
			return true
		}
	}
	return false
}

func (f facts) boundBy(binding *clusterv1beta2.ManagedClusterSetBinding, name string) answer {
	if binding.DeletionTimestamp != nil || binding.Labels[contract.LabelPublish] == "false" {
		return no
	}
	is := metav1.ConditionUnknown
	for _, condition := range binding.Status.Conditions {
		if condition.Type == clusterv1beta2.ClusterSetBindingBoundType {
			is = condition.Status
		}
	}
	set, cluster := f.all[Sets][Named("", binding.Spec.ClusterSet)], f.all[Clusters][Named("", name)]
	if is == metav1.ConditionFalse {
		return no
	}
	if set == nil {
		return unknown
	}
	of := set.Object.(*clusterv1beta2.ManagedClusterSet)
	isExclusive := of.Spec.ClusterSelector.SelectorType != clusterv1beta2.LabelSelector
	switch {
	case f.exclusiveOnly && !isExclusive, cluster == nil,
		isExclusive && cluster.GetLabels()[clusterv1beta2.ClusterSetLabel] != of.Name:
		return no
	}
	if is == metav1.ConditionUnknown {
		return unknown
	}
	return yes
}

func (f facts) placed(pair types.NamespacedName) answer {
	best, some := no, false
	for key, obj := range f.all[Placements] {
		placement := obj.Object.(*clusterv1beta1.Placement)
		if key.Namespace != pair.Namespace || placement.Labels[contract.LabelPublish] != "true" {
			continue
		}
		some = true
		listed, distinct, chosen, spans := 0, map[string]bool{}, false, false
		for _, slice := range f.all[Decisions] {
			before, behind := false, false
			of := slice.Object.(*clusterv1beta1.PlacementDecision)
			if of.Namespace != key.Namespace || of.Labels[clusterv1beta1.PlacementLabel] != key.Name {
				continue
			}
			listed += len(of.Status.Decisions)
			for _, d := range of.Status.Decisions {
				distinct[d.ClusterName] = true
				chosen = chosen || d.ClusterName == pair.Name
				before, behind = before || d.ClusterName < pair.Name, behind || d.ClusterName > pair.Name
			}
			spans = spans || before && behind
		}
		if chosen {
			return yes
		}
		// A slice with names on both sides shows that the cluster was not chosen, unless there are groups.
		spans = spans && !isGrouped(placement)
		selected := int(placement.Status.NumberOfSelectedClusters)
		isComplete := len(distinct) >= selected || spans && len(distinct) == listed
		if len(placement.Status.Conditions) == 0 || !isComplete {
			best = unknown
		}
	}
	namespace := f.all[Namespaces][Named("", pair.Namespace)]
	switch {
	case namespace == nil:
		return unknown
	case some && best == no:
		return f.unless(no, rule.LeavingCRDs...)
	case some:
		return best
	case namespace.GetAnnotations()[contract.AnnotationRequirePlacement] == "true":
		return f.unless(no, rule.PlacementCRD)
	default:
		return f.unless(yes, rule.PlacementCRD)
	}
}

// mayReturn reports whether the addon may be created again, or some publishing Placement's slices leave open for a
// while whether a cluster is chosen: they have groups, or another number of names than clusters are selected, or a
// name twice, or they are full before the cluster's name and none has names on both sides of it.
func (f facts) mayReturn(pair types.NamespacedName) bool {
	if f.installs(pair.Name) {
		return true
	}
	for key, obj := range f.all[Placements] {
		placement := obj.Object.(*clusterv1beta1.Placement)
		if key.Namespace != pair.Namespace || !isPublishing(placement) {
			continue
		}
		distinct, listed := map[string]bool{}, 0
		isFull, spans := false, false
		for _, slice := range f.all[Decisions] {
			of := slice.Object.(*clusterv1beta1.PlacementDecision)
			if of.Namespace != key.Namespace || of.Labels[clusterv1beta1.PlacementLabel] != key.Name {
				continue
			}
			before, behind := 0, 0
			for _, d := range of.Status.Decisions {
				distinct[d.ClusterName] = true
				if d.ClusterName < pair.Name {
					before++
				} else {
					behind++
				}
			}
			listed += before + behind
			isFull, spans = isFull || before >= 100, spans || before > 0 && behind > 0
		}
		isWrong := listed != int(placement.Status.NumberOfSelectedClusters) || len(distinct) != listed || isFull
		if isGrouped(placement) || isWrong && !spans {
			return true
		}
	}
	return false
}

// hasLost reports whether a namespace has no Placement in the caches because the hub has just lost that with
// its CRD.
func (s *State) hasLost(namespace string) bool {
	hub := s.onHub()
	if s.narrows(namespace) || hub.isServed(rule.PlacementCRD) && !hub.doubts(rule.PlacementCRD) {
		return false
	}
	for of := range s.births {
		if of.kind == Placements && of.key.Namespace == namespace {
			return true
		}
	}
	return false
}

// narrows reports whether a namespace has a publishing Placement, as the caches are.
func (s *State) narrows(namespace string) bool {
	for key, obj := range s.cached[Placements] {
		if key.Namespace == namespace && isPublishing(obj) {
			return true
		}
	}
	return false
}

func isGrouped(placement *clusterv1beta1.Placement) bool {
	return placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.IntVal > 0
}

func isPublishing(placement client.Object) bool {
	return placement.GetLabels()[contract.LabelPublish] == "true"
}

// hasProfiles reports whether a namespace has profiles.
func (s *State) hasProfiles(namespace string) bool {
	for key := range s.hub[Profiles] {
		if key.Namespace == namespace {
			return true
		}
	}
	return false
}

// IsOurs reports whether a profile (nil: none) is of this addon's cluster manager, and IsMarked
// whether it is one that it may delete.
func IsOurs(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile != nil && profile.Spec.ClusterManager.Name == contract.ClusterManagerName
}

// IsMarked says more than IsOurs.
func IsMarked(profile *inventoryv1alpha1.ClusterProfile) bool {
	return IsOurs(profile) && profile.Labels[contract.LabelManagedBy] == contract.ManagedBy
}
