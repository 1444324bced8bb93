package decisions

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// answers say which profiles of a namespace may be referred to.
type answers func(cluster string) selection.Answer

// referred returns the clusters that slices refer to, with the group of the first such
// slice.
func referred(current []slice) map[string]selection.Group {
	clusters := map[string]selection.Group{}
	for _, s := range current {
		for _, cluster := range s.clusters {
			if _, ok := clusters[cluster]; !ok {
				clusters[cluster] = s.group
			}
		}
	}
	return clusters
}

// notChosen returns the clusters that slices refer to although the Placement does not
// choose them, or no longer.
func notChosen(referred map[string]selection.Group, choice selection.Choice) []string {
	return sets.KeySet(referred).Difference(sets.KeySet(choice.Clusters)).UnsortedList()
}

// desiredClusters returns the clusters that slices must refer to, given those they refer to
// now. left are those that the Placement has ceased to choose.
//
// A cluster whose profile must not be referred to is removed, even if the Placement selects it.
// Otherwise, a choice that is unknown changes nothing, and one that is incomplete adds nothing.
// A cluster whose profile is merely not known to be complete is not added, and stays if it is
// there.
func desiredClusters(
	referred map[string]selection.Group, choice selection.Choice, left []string, of answers,
) map[string]selection.Group {
	want := make(map[string]selection.Group, max(len(referred), len(choice.Clusters)))
	for cluster, group := range referred {
		if of(cluster) != selection.No {
			want[cluster] = group
		}
	}
	if choice.Answer != selection.Yes {
		return want
	}
	for _, cluster := range left {
		delete(want, cluster)
	}
	if choice.Incomplete != "" {
		return want
	}
	for cluster, group := range choice.Clusters {
		_, stays := want[cluster]
		if stays || of(cluster) == selection.Yes {
			want[cluster] = group
		}
	}
	return want
}

// mayBegin reports whether a Placement without slices gets an empty one: it has decided for
// no cluster. A Placement that has decided only for clusters whose profiles are not
// complete gets its first slice with the first complete one. While no cluster at all has a
// profile, as during the addon's uninstallation, no slice is created.
func mayBegin(choice selection.Choice, want map[string]selection.Group, anyAllowed bool) bool {
	if len(want) > 0 {
		return true
	}
	return choice.Answer == selection.Yes && choice.Incomplete == "" && len(choice.Clusters) == 0 && anyAllowed
}
