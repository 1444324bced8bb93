package inventory

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
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
func (f memberFollower) OnDelete(before any) {
	if missed, ok := before.(toolscache.DeletedFinalStateUnknown); ok {
		before = missed.Obj
	}
	f.changed(before)
}

func (f memberFollower) changed(object any) {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok || !f.i.opts.Rule.Ready() {
		return
	}
	for _, id := range []string{cluster.Name, wantedMemberID(cluster)} {
		if id == "" {
			continue
		}
		claimants, err := f.i.opts.Rule.MemberIDClaimants(f.i.ctx, id, "")
		if err != nil {
			log.FromContext(f.i.ctx).Error(err, "Cannot find the clusters with a member id", "id", id)
		} else if len(claimants) == 0 {
			f.i.pairs.members.forget(id)
		}
		for _, claimant := range claimants {
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
