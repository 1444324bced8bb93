package selection

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// MemberIDClaimant is a ManagedCluster that may have a member id: its label asks for it, or it
// is the cluster's name.
type MemberIDClaimant struct {
	Name    string
	Created time.Time

	// Holds is true if a profile of the cluster has the id.
	Holds bool
}

// MemberIDClaimants returns the clusters that may have a member id. Except for self, the labels
// of clusters that are not accepted do not count: anything that registers can create one. Their
// names do, because they may be accepted. So does a cluster of which only a profile with the id
// is left: the ManagedCluster may be missing only for a moment, or be about to get another id.
func (r *Rule) MemberIDClaimants(ctx context.Context, id, self string) ([]MemberIDClaimant, error) {
	list := &clusterv1.ManagedClusterList{}
	if err := r.cache.List(ctx, list, client.MatchingFields{IndexClusterByMemberID: id}, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("finding the ManagedClusters with member id %s: %w", id, err)
	}
	var claimants []MemberIDClaimant
	add := func(cluster *clusterv1.ManagedCluster) {
		claimants = append(claimants, MemberIDClaimant{Name: cluster.Name, Created: cluster.CreationTimestamp.Time})
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		if cluster.Name != id && (cluster.Spec.HubAcceptsClient || cluster.Name == self) {
			add(cluster)
		}
	}
	named, err := kube.Get(ctx, r.cache, types.NamespacedName{Name: id}, &clusterv1.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	if named != nil {
		add(named)
	}
	if !r.ready.Load() {
		return claimants, nil
	}
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	if err := r.cache.List(ctx, profiles, client.MatchingFields{IndexProfileByMemberID: id}, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("finding the ClusterProfiles with member id %s: %w", id, err)
	}
	holds := map[string]bool{}
	for i := range profiles.Items {
		holds[profiles.Items[i].Name] = true
	}
	for i := range claimants {
		claimants[i].Holds = holds[claimants[i].Name]
		delete(holds, claimants[i].Name)
	}
	for name := range holds {
		claimants = append(claimants, MemberIDClaimant{Name: name, Holds: true})
	}
	return claimants, nil
}
