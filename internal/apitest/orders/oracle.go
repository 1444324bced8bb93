package orders

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// answer is what must be so for a pair.
type answer string

const (
	yes     answer = "Yes"
	no      answer = "No"
	unknown answer = "Unknown"
)

// truth is the answer for a pair, as the hub is.
func (s *State) truth(pair types.NamespacedName) answer { return answerOf(&s.hub, pair) }

// shown is the answer for a pair, as the caches are.
func (s *State) shown(pair types.NamespacedName) answer { return answerOf(&s.cached, pair) }

// Entitled reports whether the truth has said Yes about a pair since the caches last showed
// all of it, and Denied whether it has said No.
func (s *State) Entitled(pair types.NamespacedName) bool { return s.seen[pair].yes }

// Denied is the opposite of Entitled, and may hold at the same time.
func (s *State) Denied(pair types.NamespacedName) bool { return s.seen[pair].no }

// answerOf applies the rule of docs/architecture.md, as shortly as it can be said. It knows
// only what the small world has.
func answerOf(all *[kinds]store, pair types.NamespacedName) answer {
	all3 := []answer{inventoried(all, pair.Name), bound(all, pair), placed(all, pair)}
	switch {
	case slices.Contains(all3, no):
		return no
	case slices.Contains(all3, unknown):
		return unknown
	default:
		return yes
	}
}

func inventoried(all *[kinds]store, name string) answer {
	cluster, addon := all[Clusters][Named("", name)], all[Addons][Named(name, contract.AddonName)]
	if cluster == nil || addon == nil {
		return no
	}
	of := cluster.Object.(*clusterv1.ManagedCluster)
	if of.DeletionTimestamp != nil || !of.Spec.HubAcceptsClient ||
		addon.Object.(*addonv1beta1.ManagedClusterAddOn).DeletionTimestamp != nil {
		return no
	}
	return yes
}

func bound(all *[kinds]store, pair types.NamespacedName) answer {
	best := no
	for key, obj := range all[Bindings] {
		if key.Namespace != pair.Namespace {
			continue
		}
		switch boundBy(all, obj.Object.(*clusterv1beta2.ManagedClusterSetBinding), pair.Name) {
		case yes:
			return yes
		case unknown:
			best = unknown
		}
	}
	return best
}

func boundBy(all *[kinds]store, binding *clusterv1beta2.ManagedClusterSetBinding, name string) answer {
	if binding.DeletionTimestamp != nil || binding.Labels[contract.LabelPublish] == "false" {
		return no
	}
	is := metav1.ConditionUnknown
	for _, condition := range binding.Status.Conditions {
		if condition.Type == clusterv1beta2.ClusterSetBindingBoundType {
			is = condition.Status
		}
	}
	set, cluster := all[Sets][Named("", binding.Spec.ClusterSet)], all[Clusters][Named("", name)]
	if is == metav1.ConditionFalse {
		return no
	}
	if set == nil {
		return unknown
	}
	of := set.Object.(*clusterv1beta2.ManagedClusterSet)
	if of.Spec.ClusterSelector.SelectorType == clusterv1beta2.ExclusiveClusterSetLabel {
		if cluster == nil || cluster.GetLabels()[clusterv1beta2.ClusterSetLabel] != of.Name {
			return no
		}
	}
	if is == metav1.ConditionUnknown {
		return unknown
	}
	return yes
}

func placed(all *[kinds]store, pair types.NamespacedName) answer {
	best, some := no, false
	for key, obj := range all[Placements] {
		placement := obj.Object.(*clusterv1beta1.Placement)
		if key.Namespace != pair.Namespace || placement.Labels[contract.LabelPublish] != "true" {
			continue
		}
		some = true
		listed, chosen, before, behind := 0, false, false, false
		for _, slice := range all[Decisions] {
			of := slice.Object.(*clusterv1beta1.PlacementDecision)
			if of.Namespace != key.Namespace || of.Labels[clusterv1beta1.PlacementLabel] != key.Name {
				continue
			}
			listed += len(of.Status.Decisions)
			for _, d := range of.Status.Decisions {
				chosen = chosen || d.ClusterName == pair.Name
				before, behind = before || d.ClusterName < pair.Name, behind || d.ClusterName > pair.Name
			}
		}
		if chosen {
			return yes
		}
		// A slice with names on both sides shows that the cluster was not chosen.
		isComplete := listed >= int(placement.Status.NumberOfSelectedClusters) || before && behind
		if len(placement.Status.Conditions) == 0 || !isComplete {
			best = unknown
		}
	}
	namespace := all[Namespaces][Named("", pair.Namespace)]
	switch {
	case namespace == nil:
		return unknown
	case some:
		return best
	case namespace.GetAnnotations()[contract.AnnotationRequirePlacement] == "true":
		return no
	default:
		return yes
	}
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
