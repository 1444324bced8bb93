package profiles

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// MemberIDHolder returns which claimant has a member id. The one that had it last keeps it; last
// is empty if that is not known, and then a profile may show it: rather one of a ManagedCluster that
// exists, because a tenant can make up any other. Otherwise the id belongs to the cluster of that name,
// or else to the oldest.
func MemberIDHolder(id, last string, claimants []selection.MemberIDClaimant) string {
	if len(claimants) == 0 {
		return ""
	}
	exists := func(c selection.MemberIDClaimant) bool { return !c.Created.IsZero() }
	isNamed := func(c selection.MemberIDClaimant, name string) bool { return name != "" && c.Name == name }
	best := slices.MinFunc(claimants, func(a, b selection.MemberIDClaimant) int {
		return cmp.Or(
			before(isNamed(a, last), isNamed(b, last)),
			before(a.Holds && exists(a), b.Holds && exists(b)),
			before(a.Holds, b.Holds),
			before(isNamed(a, id), isNamed(b, id)),
			a.Created.Compare(b.Created),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return best.Name
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

// MemberID is what is known about the member id of a cluster.
type MemberID struct {
	// ID is the cluster's, empty if another cluster has its name as its id.
	ID string

	// Refused is the id that the cluster asks for and does not get.
	Refused string
}

// MemberIDsOf returns the member ids that a cluster may have: the one that its label asks for, if
// any, and its name.
func MemberIDsOf(cluster *clusterv1.ManagedCluster) []string {
	if wanted := WantedMemberID(cluster); wanted != "" {
		return []string{wanted, cluster.Name}
	}
	return []string{cluster.Name}
}

// WantedMemberID returns the id that a cluster's label asks for instead of its name, if any.
func WantedMemberID(cluster *clusterv1.ManagedCluster) string {
	wanted := cluster.Labels[contract.LabelInventoryMemberID]
	if wanted == cluster.Name || len(validation.IsValidLabelValue(wanted)) > 0 {
		return ""
	}
	return wanted
}

// MemberIDOf decides between the id that a cluster's label asks for, if any, and its name, given
// who has which.
func MemberIDOf(cluster *clusterv1.ManagedCluster, holder func(id string) string) MemberID {
	var result MemberID
	for _, id := range MemberIDsOf(cluster) {
		owner := holder(id)
		if owner == cluster.Name || owner == "" { // or no cluster asks for it, so the label is about to change
			result.ID = id
			return result
		}
		if result.Refused == "" {
			result.Refused = id
		}
	}
	return result
}

// ShownMemberID is what is known from a profile alone: the id that it has counts as right if
// the cluster may have it.
func ShownMemberID(o Observed) MemberID {
	if o.Profile == nil || o.Cluster == nil {
		return MemberID{}
	}
	id := o.Profile.Labels[contract.LabelInventoryMemberID]
	if id != o.Cluster.Name && id != WantedMemberID(o.Cluster) {
		return MemberID{}
	}
	return MemberID{ID: id}
}

// problem says which member id a cluster does not get, or nothing. It does not name the
// holder: a spoke reads this, and chooses which ids to ask for.
func (m MemberID) problem() string {
	if m.Refused == "" {
		return ""
	}
	return "the member id " + kube.Quote(m.Refused) + ", which another cluster has"
}
