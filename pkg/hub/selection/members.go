package selection

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// MayHaveMemberID reports whether a cluster is one of MemberIDClaimants, without a look at the
// others; there may be thousands.
func (r *Rule) MayHaveMemberID(ctx context.Context, cluster, id, self string) (bool, error) {
	found, err := kube.Get(ctx, r.cache, types.NamespacedName{Name: cluster}, &clusterv1.ManagedCluster{})
	if err != nil || found != nil && rule.ClaimsMemberID(found, id, self) {
		return err == nil, err
	}
	holders, err := r.memberIDHolders(ctx, id)
	return holders[cluster], err
}

// MemberIDClaimants returns the clusters that may have a member id (ClaimsMemberID). So may a
// cluster if only a profile with the id is left: the ManagedCluster may be missing only for a
// moment, or be about to get another id.
func (r *Rule) MemberIDClaimants(ctx context.Context, id, self string) ([]rule.MemberIDClaimant, error) {
	list := &clusterv1.ManagedClusterList{}
	asking := client.MatchingFields{routes.IndexClusterByMemberID: id}
	if err := r.cache.List(ctx, list, asking, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("finding the ManagedClusters with member id %s: %w", id, err)
	}
	named, err := kube.Get(ctx, r.cache, types.NamespacedName{Name: id}, &clusterv1.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	holders, err := r.memberIDHolders(ctx, id)
	if err != nil {
		return nil, err
	}
	var claimants []rule.MemberIDClaimant
	add := func(cluster *clusterv1.ManagedCluster) {
		claimants = append(claimants, rule.MemberIDClaimant{
			Name: cluster.Name, Created: cluster.CreationTimestamp.Time, Holds: holders[cluster.Name],
		})
		delete(holders, cluster.Name)
	}
	for i := range list.Items {
		if cluster := &list.Items[i]; cluster.Name != id && rule.ClaimsMemberID(cluster, id, self) {
			add(cluster)
		}
	}
	if named != nil {
		add(named)
	}
	for name := range holders {
		claimants = append(claimants, rule.MemberIDClaimant{Name: name, Holds: true})
	}
	return claimants, nil
}

// memberIDHolders returns the clusters that have a profile with a member id.
func (r *Rule) memberIDHolders(ctx context.Context, id string) (map[string]bool, error) {
	if !r.ready.Load() {
		return nil, nil
	}
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	having := client.MatchingFields{routes.IndexProfileByMemberID: id}
	if err := r.cache.List(ctx, profiles, having, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("finding the ClusterProfiles with member id %s: %w", id, err)
	}
	holders := map[string]bool{}
	for i := range profiles.Items {
		holders[profiles.Items[i].Name] = true
	}
	return holders, nil
}
