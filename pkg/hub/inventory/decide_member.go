package inventory

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// holderOf returns which claimant has a member id. The one that had it last keeps it, as far
// as this process or, after a start, a profile knows. Otherwise the id belongs to the cluster
// of that name, or else to the oldest.
func holderOf(id, last string, claimants []selection.MemberIDClaimant) string {
	if len(claimants) == 0 {
		return ""
	}
	isNamed := func(c selection.MemberIDClaimant, name string) bool { return name != "" && c.Name == name }
	best := slices.MinFunc(claimants, func(a, b selection.MemberIDClaimant) int {
		return cmp.Or(
			before(isNamed(a, last), isNamed(b, last)),
			before(a.Holds, b.Holds),
			before(isNamed(a, id), isNamed(b, id)),
			a.Created.Compare(b.Created),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return best.Name
}

// MemberIDHolder returns which claimant has a member id, as far as that can be told without
// knowing which one had it last.
func MemberIDHolder(id string, claimants []selection.MemberIDClaimant) string {
	return holderOf(id, "", claimants)
}

// before orders what is true first.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// memberID is what is known about the member id of a cluster.
type memberID struct {
	// id is the cluster's, empty if another cluster has its name as its id.
	id string

	// refused is the id that the cluster asks for and does not get.
	refused string
}

// MemberIDOf returns the member id of a cluster, given who has which, and the one that it asks for
// and does not get, if any. id is empty if another cluster has its name as its id.
func MemberIDOf(cluster *clusterv1.ManagedCluster, holder func(id string) string) (id, refused string) {
	m := memberIDOf(cluster.Name, wantedMemberID(cluster), holder)
	return m.id, m.refused
}

// MemberIDsOf returns the member ids that a cluster may have: the one that its label asks for, if
// any, and its name.
func MemberIDsOf(cluster *clusterv1.ManagedCluster) []string {
	if wanted := wantedMemberID(cluster); wanted != "" {
		return []string{wanted, cluster.Name}
	}
	return []string{cluster.Name}
}

// wantedMemberID returns the id that a cluster's label asks for instead of its name, if any.
func wantedMemberID(cluster *clusterv1.ManagedCluster) string {
	wanted := cluster.Labels[contract.LabelInventoryMemberID]
	if wanted == cluster.Name || len(validation.IsValidLabelValue(wanted)) > 0 {
		return ""
	}
	return wanted
}

// memberIDOf decides between the id that a cluster's label asks for, if any, and its name.
func memberIDOf(cluster, wanted string, holder func(id string) string) memberID {
	var result memberID
	for _, id := range []string{wanted, cluster} {
		if id == "" {
			continue
		}
		owner := holder(id)
		if owner == cluster || owner == "" { // or nobody asks for it, so the label is about to change
			result.id = id
			return result
		}
		if result.refused == "" {
			result.refused = id
		}
	}
	return result
}

// shownMemberID is what is known from a profile alone: the id that it has counts as right if
// the cluster may have it.
func shownMemberID(o observed) memberID {
	if o.Profile == nil || o.Cluster == nil {
		return memberID{}
	}
	id := o.Profile.Labels[contract.LabelInventoryMemberID]
	if id != o.Cluster.Name && id != wantedMemberID(o.Cluster) {
		return memberID{}
	}
	return memberID{id: id}
}

// problem says which member id a cluster does not get, or nothing. It does not name the
// holder: a spoke reads this, and chooses which ids to ask for.
func (m memberID) problem() string {
	if m.refused == "" {
		return ""
	}
	return "the member id " + kube.Quote(m.refused) + ", which another cluster has"
}
