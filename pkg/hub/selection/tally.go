package selection

import (
	"hash/maphash"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// tally summarizes all slices of a Placement's decisions.
type tally struct {
	// decisions is how many clusters all slices contain. A cluster in two slices, because
	// OCM has written only one of them so far, counts once.
	decisions int

	// slices and versions distinguish states of the slices.
	slices   int
	versions uint64

	// layout is nil if there is none to look at.
	layout *layout
}

func tallyOf(decisions []clusterv1beta1.PlacementDecision) tally {
	clusters := map[string]struct{}{}
	for i := range decisions {
		for _, decision := range decisions[i].Status.Decisions {
			if decision.ClusterName != "" {
				clusters[decision.ClusterName] = struct{}{}
			}
		}
	}
	return tally{
		decisions: len(clusters), slices: len(decisions), versions: versionsOf(decisions), layout: layoutOf(decisions),
	}
}

var versionSeed = maphash.MakeSeed()

// versionsOf identifies the versions of all slices, whatever their order.
func versionsOf(decisions []clusterv1beta1.PlacementDecision) (sum uint64) {
	for i := range decisions {
		sum += maphash.Comparable(versionSeed, [2]string{decisions[i].Name, decisions[i].ResourceVersion})
	}
	return sum
}

// isOf reports whether it is the tally of the slices in these versions.
func (t tally) isOf(decisions []clusterv1beta1.PlacementDecision) bool {
	return t.layout != nil && t.slices == len(decisions) && t.versions == versionsOf(decisions)
}

// withoutLayout returns what distinguishes it from other tallies.
func (t tally) withoutLayout() tally {
	t.layout = nil
	return t
}
