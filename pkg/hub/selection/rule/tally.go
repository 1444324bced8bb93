package rule

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Tally summarizes all slices of a Placement's decisions.
type Tally struct {
	// decisions is how many clusters all slices contain. A cluster in two slices, because
	// OCM has written only one of them so far, counts once.
	decisions int

	// Slices and versions distinguish states of the slices.
	Slices   int
	versions uint64

	// layout is nil only in a Tally that was not made by TallyOf.
	layout *layout
}

// TallyOf returns the tally of all slices of a Placement.
func TallyOf(decisions []clusterv1beta1.PlacementDecision) Tally {
	clusters := sets.New[string]()
	for i := range decisions {
		clusters.Insert(DecidedClusters(&decisions[i])...)
	}
	return Tally{
		decisions: len(clusters), Slices: len(decisions), versions: versionsOf(decisions), layout: layoutOf(decisions),
	}
}

var versionSeed = maphash.MakeSeed()

// versionsOf identifies the versions of all slices, in any order.
func versionsOf(decisions []clusterv1beta1.PlacementDecision) (sum uint64) {
	for i := range decisions {
		sum += maphash.Comparable(versionSeed, [2]string{decisions[i].Name, decisions[i].ResourceVersion})
	}
	return sum
}

// IsOf reports whether it is the tally of the slices in these versions.
func (t Tally) IsOf(decisions []clusterv1beta1.PlacementDecision) bool {
	return t.layout != nil && t.Slices == len(decisions) && t.versions == versionsOf(decisions)
}

// WithoutLayout returns what distinguishes it from other tallies.
func (t Tally) WithoutLayout() Tally {
	t.layout = nil
	return t
}
