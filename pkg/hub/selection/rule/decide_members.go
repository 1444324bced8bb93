package rule

import (
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// MemberIDClaimant is a ManagedCluster that may have a member id: its label asks for it, or it
// is the cluster's name.
type MemberIDClaimant struct {
	Name string

	// Created is zero if the ManagedCluster is missing.
	Created time.Time

	// Holds is true if a profile of the cluster has the id.
	Holds bool
}

// MemberIDHeldBy returns the member id that a profile of this addon's holds for its cluster; "" if none. One
// that is being deleted holds none: a tenant's finalizer can keep it for any time, also one that the tenant has
// created.
func MemberIDHeldBy(profile *inventoryv1alpha1.ClusterProfile) string {
	if profile == nil || !IsMarked(profile) || profile.DeletionTimestamp != nil {
		return ""
	}
	return profile.Labels[contract.LabelInventoryMemberID]
}

// ClaimsMemberID reports whether a cluster may have a member id by its name or label. Except
// for self, the labels of clusters that are not accepted do not count: anything that registers
// can create one. Their names do, because they may be accepted.
func ClaimsMemberID(cluster *clusterv1.ManagedCluster, id, self string) bool {
	return cluster.Name == id || cluster.Labels[contract.LabelInventoryMemberID] == id &&
		(cluster.Spec.HubAcceptsClient || cluster.Name == self)
}
