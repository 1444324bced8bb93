package rule

import (
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// MemberIDClaimant is a ManagedCluster that may have a member id: its label asks for it, or it
// is the cluster's name.
type MemberIDClaimant struct {
	Name    string
	Created time.Time

	// Holds is true if a profile of the cluster has the id.
	Holds bool
}

// ClaimsMemberID reports whether a cluster may have a member id by its name or label. Except
// for self, the labels of clusters that are not accepted do not count: anything that registers
// can create one. Their names do, because they may be accepted.
func ClaimsMemberID(cluster *clusterv1.ManagedCluster, id, self string) bool {
	return cluster.Name == id || cluster.Labels[contract.LabelInventoryMemberID] == id &&
		(cluster.Spec.HubAcceptsClient || cluster.Name == self)
}
