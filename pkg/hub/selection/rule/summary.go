package rule

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Summary summarizes all slices of a Placement's decisions.
type Summary struct {
	// decisions is how many clusters all slices contain. A cluster in two slices, because
	// OCM has written only one of them so far, counts once.
	decisions int

	// Slices and versions distinguish states of the slices.
	Slices   int
	versions uint64

	// layout is nil only in a Summary that was not made by SummaryOf.
	layout *layout
}

// SummaryOf returns the summary of all slices of a Placement.
func SummaryOf(decisions []clusterv1beta1.PlacementDecision) Summary {
	clusters := sets.New[string]()
	for i := range decisions {
		clusters.Insert(DecidedClusters(&decisions[i])...)
	}
	return Summary{
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

// IsOf reports whether it is the summary of the slices in these versions.
func (s Summary) IsOf(decisions []clusterv1beta1.PlacementDecision) bool {
	return s.layout != nil && s.Slices == len(decisions) && s.versions == versionsOf(decisions)
}

// WithoutLayout returns what distinguishes it from other summaries.
func (s Summary) WithoutLayout() Summary {
	s.layout = nil
	return s
}
