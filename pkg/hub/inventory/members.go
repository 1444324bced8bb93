package inventory

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// members knows which cluster has which member id. The ids are read from caches; only who
// had one last is remembered, and what may have been written since.
type members struct {
	rule *selection.Rule

	mu      sync.Mutex
	holders map[string]string // clusters by id

	// unseen are the pairs whose profiles may have an id that the cache does not show yet, by
	// id; writing is the same by pair.
	unseen  kube.SetIndex[string, types.NamespacedName]
	writing map[types.NamespacedName]string
}

func newMembers(rule *selection.Rule) *members {
	return &members{
		rule: rule, holders: map[string]string{},
		unseen: kube.SetIndex[string, types.NamespacedName]{}, writing: map[types.NamespacedName]string{},
	}
}

// of returns the member id of a pair's cluster. The cache must have caught up with this
// process's writes of the pair's profile. If that is about to be written, no other cluster gets
// the id until of is called again for the pair. freed is an id that was kept so, and is not in
// the profile.
func (m *members) of(
	ctx context.Context, o profiles.Observed, writes bool,
) (result profiles.MemberID, freed string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	shown, before := "", m.writing[o.Pair]
	if o.Profile != nil {
		shown = o.Profile.Labels[contract.LabelInventoryMemberID]
	}
	m.unseen.Delete(before, o.Pair)
	delete(m.writing, o.Pair)
	if o.Cluster != nil {
		result = profiles.MemberIDOf(o.Cluster, func(id string) string {
			holder, failure := m.decide(ctx, id, o.Cluster.Name)
			err = errors.Join(err, failure)
			return holder
		})
		if writes && err == nil && result.ID != "" && result.ID != shown {
			m.unseen.Insert(result.ID, o.Pair)
			m.writing[o.Pair] = result.ID
			m.holders[result.ID] = o.Cluster.Name // also if it does not ask for it any more
		}
	}
	if before != m.writing[o.Pair] && before != shown {
		freed = before
	}
	return result, freed, err
}

// decide returns which cluster has an id for which a cluster asks. As long as the last one may
// have it, the others are not read.
func (m *members) decide(ctx context.Context, id, self string) (string, error) {
	last := m.holders[id]
	if last == self || last != "" && m.isWriting(last, id) {
		return last, nil
	}
	if last != "" {
		if keeps, err := m.rule.MayHaveMemberID(ctx, last, id, self); err != nil || keeps {
			return last, err
		}
	}
	claimants, err := m.rule.MemberIDClaimants(ctx, id, self)
	if err != nil {
		return "", err
	}
	holder := profiles.MemberIDHolder(id, last, claimants)
	if holder == "" {
		delete(m.holders, id)
	} else {
		m.holders[id] = holder
	}
	return holder, nil
}

// isWriting reports whether a profile of a cluster may have an id that the cache does not show.
func (m *members) isWriting(cluster, id string) bool {
	for pair := range m.unseen[id] {
		if pair.Name == cluster {
			return true
		}
	}
	return false
}

// isFree reports whether a cluster that is known to have had an id may no longer have it.
func (m *members) isFree(ctx context.Context, id, cluster string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if holder := m.holders[id]; holder != "" && holder != cluster || m.isWriting(cluster, id) {
		return false, nil
	} else if holder == "" {
		return true, nil
	}
	keeps, err := m.rule.MayHaveMemberID(ctx, cluster, id, "")
	return !keeps, err
}

// forget drops the last holder of an id that no cluster asks for any more.
func (m *members) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.unseen[id]) == 0 {
		delete(m.holders, id)
	}
}

// followMembers has the pairs of clusters reconciled whose member id may have become free, or is
// claimed by another cluster, because that one has changed.
func (i *inventory) followMembers(before, after *clusterv1.ManagedCluster, initial bool) {
	const key = contract.LabelInventoryMemberID
	if initial || before != nil && after != nil &&
		before.Labels[key] == after.Labels[key] && before.Spec.HubAcceptsClient == after.Spec.HubAcceptsClient {
		return
	}
	for _, cluster := range []*clusterv1.ManagedCluster{before, after} {
		if cluster != nil {
			i.enqueueClaimants(cluster.Name, cluster.Name, profiles.WantedMemberID(cluster))
		}
	}
}

// followHeldIDs does the same when a profile no longer has an id.
func (i *inventory) followHeldIDs(before, after *inventoryv1alpha1.ClusterProfile, _ bool) {
	if held := selection.MemberIDHeldBy(before); held != "" && held != selection.MemberIDHeldBy(after) {
		i.enqueueClaimants(before.Name, held)
	}
}

// enqueueClaimants makes the claimants of ids be reconciled that a cluster may have gained or lost.
// One that is not their holder changes nothing for the others.
func (i *inventory) enqueueClaimants(cluster string, ids ...string) {
	if !i.opts.Rule.Ready() {
		return
	}
	for _, id := range ids {
		if id == "" {
			continue
		}
		free, err := i.pairs.members.isFree(i.ctx, id, cluster)
		if err != nil {
			log.FromContext(i.ctx).Error(err, "Cannot find the cluster with a member id", "id", id)
		} else if !free {
			continue
		}
		claimants, err := i.opts.Rule.MemberIDClaimants(i.ctx, id, "")
		if err != nil {
			log.FromContext(i.ctx).Error(err, "Cannot find the clusters with a member id", "id", id)
		} else if len(claimants) == 0 {
			i.pairs.members.forget(id)
		}
		for _, claimant := range claimants {
			if claimant.Name == cluster {
				continue // its own event is enough
			}
			pairs, err := i.routes.PairsWithProfile(i.ctx, claimant.Name)
			if err != nil {
				log.FromContext(i.ctx).Error(err, "Cannot find the profiles of a cluster", "cluster", claimant.Name)
			}
			for _, pair := range pairs {
				i.everyTrigger.Enqueue(pair)
			}
		}
	}
}
