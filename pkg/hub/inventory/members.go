package inventory

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// members knows which cluster has which member id. The ids are read from caches; only who
// had one last is remembered.
type members struct {
	rule *selection.Rule

	mu      sync.Mutex
	holders map[string]string // clusters by id, where another cluster's name or label is that id, too
}

func newMembers(rule *selection.Rule) *members {
	return &members{rule: rule, holders: map[string]string{}}
}

// of returns the member id of a cluster.
func (m *members) of(ctx context.Context, cluster *clusterv1.ManagedCluster) (memberID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var failed error
	result := memberIDOf(cluster.Name, wantedMemberID(cluster), func(id string) string {
		claimants, err := m.rule.MemberIDClaimants(ctx, id, cluster.Name)
		if err != nil {
			failed = err
			return ""
		}
		holder := holderOf(id, m.holders[id], claimants)
		if holder == "" || len(claimants) == 1 && holder == id {
			delete(m.holders, id)
		} else {
			m.holders[id] = holder
		}
		return holder
	})
	return result, failed
}

// holder returns the cluster that had an id last, if several ask for it.
func (m *members) holder(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holders[id]
}

// forget drops the last holder of an id that no cluster asks for any more.
func (m *members) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.holders, id)
}

// memberFollower makes the pairs of clusters be reconciled whose member id may have become
// free, or is claimed by another cluster, because that one has changed.
type memberFollower struct{ i *inventory }

var _ toolscache.ResourceEventHandler = memberFollower{}

// OnAdd implements toolscache.ResourceEventHandler.
func (f memberFollower) OnAdd(after any, isInInitialList bool) {
	if !isInInitialList {
		f.changed(after)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (f memberFollower) OnUpdate(before, after any) {
	b, okBefore := before.(*clusterv1.ManagedCluster)
	a, okAfter := after.(*clusterv1.ManagedCluster)
	const key = contract.LabelInventoryMemberID
	if okBefore && okAfter && (b.Labels[key] != a.Labels[key] || b.Spec.HubAcceptsClient != a.Spec.HubAcceptsClient) {
		f.changed(before)
		f.changed(after)
	}
}

// OnDelete implements toolscache.ResourceEventHandler.
func (f memberFollower) OnDelete(before any) { f.changed(before) }

func (f memberFollower) changed(object any) {
	if cluster, ok := kube.InEvent[*clusterv1.ManagedCluster](object); ok {
		f.askAgain(cluster.Name, cluster.Name, wantedMemberID(cluster))
	}
}

// heldFollower does the same when a profile no longer has an id.
type heldFollower struct{ memberFollower }

var _ toolscache.ResourceEventHandler = heldFollower{}

// OnAdd implements toolscache.ResourceEventHandler.
func (heldFollower) OnAdd(any, bool) {}

// OnUpdate implements toolscache.ResourceEventHandler.
func (f heldFollower) OnUpdate(before, after any) {
	b, okBefore := before.(*inventoryv1alpha1.ClusterProfile)
	a, okAfter := after.(*inventoryv1alpha1.ClusterProfile)
	const key = contract.LabelInventoryMemberID
	if okBefore && okAfter && b.Labels[key] != a.Labels[key] {
		f.askAgain(b.Name, b.Labels[key])
	}
}

// OnDelete implements toolscache.ResourceEventHandler.
func (f heldFollower) OnDelete(before any) {
	if profile, ok := kube.InEvent[*inventoryv1alpha1.ClusterProfile](before); ok {
		f.askAgain(profile.Name, profile.Labels[contract.LabelInventoryMemberID])
	}
}

// askAgain makes the claimants of ids be reconciled that a cluster may have gained or lost. One
// that is not their holder changes nothing for the others.
func (f memberFollower) askAgain(cluster string, ids ...string) {
	if !f.i.opts.Rule.Ready() {
		return
	}
	for _, id := range ids {
		if holder := f.i.pairs.members.holder(id); id == "" || holder != "" && holder != cluster {
			continue
		}
		claimants, err := f.i.opts.Rule.MemberIDClaimants(f.i.ctx, id, "")
		if err != nil {
			log.FromContext(f.i.ctx).Error(err, "Cannot find the clusters with a member id", "id", id)
		} else if len(claimants) == 0 {
			f.i.pairs.members.forget(id)
		}
		for _, claimant := range claimants {
			if claimant.Name == cluster {
				continue // its own event is enough
			}
			pairs, err := f.i.routes.PairsWithProfile(f.i.ctx, claimant.Name)
			if err != nil {
				log.FromContext(f.i.ctx).Error(err, "Cannot find the profiles of a cluster", "cluster", claimant.Name)
			}
			for _, pair := range pairs {
				f.i.everyTrigger.Enqueue(pair)
			}
		}
	}
}
