package report

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Outcomes holds, in memory, the outcome of each pair, and notifies the reporters: for a
// cluster, its addon's condition; for a namespace, its events. A pair for which no consumer
// expects a profile has no entry.
type Outcomes struct {
	// StatusChanged is called when the condition of a cluster, or of every cluster if the name is
	// empty, may have changed. ScopeChanged is called with each scope of Reports in which
	// something has changed.
	StatusChanged func(cluster string)
	ScopeChanged  func(scope types.NamespacedName)

	// Metrics count the outcomes; nil disables them.
	Metrics *metrics.Metrics

	mu    sync.RWMutex
	pairs map[types.NamespacedName]Outcome
	// namespaces, by cluster, and clusters, by namespace, hold the keys of pairs.
	namespaces kube.SetIndex[string, string]
	clusters   kube.SetIndex[string, string]

	// inconclusive holds, by Placement and cluster, the latest removals of profiles although
	// the Placement may still choose the cluster.
	inconclusive map[types.NamespacedName]map[string]Removal

	// overruledAt holds, by namespace and cluster, when which properties of other writers were
	// last overruled by claims.
	overruledAt map[string]map[string]overruling
}

// overruling is a write that gave properties of other writers the values of claims.
type overruling struct {
	at    time.Time
	names []string
}

// Removal is the removal of a profile after the longest wait for a Placement.
type Removal struct {
	At time.Time

	// ByAddon is true if the cluster lacked the addon, not the Placement's decision.
	ByAddon bool
}

// reportedFor is for how long what happened once is reported.
const reportedFor = 10 * time.Minute

// NewOutcomes returns empty outcomes, of whose changes no one is notified.
func NewOutcomes() *Outcomes {
	return &Outcomes{
		StatusChanged: func(string) {}, ScopeChanged: func(types.NamespacedName) {},

		pairs:        map[types.NamespacedName]Outcome{},
		namespaces:   kube.SetIndex[string, string]{},
		clusters:     kube.SetIndex[string, string]{},
		inconclusive: map[types.NamespacedName]map[string]Removal{},
		overruledAt:  map[string]map[string]overruling{},
	}
}

// Set records a pair's outcome.
func (o *Outcomes) Set(pair types.NamespacedName, value Outcome) { o.replace(pair, value, true) }

// Forget drops a pair for which no consumer expects a profile any more.
func (o *Outcomes) Forget(pair types.NamespacedName) { o.replace(pair, Outcome{}, false) }

func (o *Outcomes) replace(pair types.NamespacedName, value Outcome, keep bool) {
	o.mu.Lock()
	before, known := o.pairs[pair]
	changed := known != keep || !reflect.DeepEqual(before, value)
	switch {
	case changed && keep:
		o.pairs[pair] = value
		o.namespaces.Insert(pair.Name, pair.Namespace)
		o.clusters.Insert(pair.Namespace, pair.Name)
	case changed:
		delete(o.pairs, pair)
		o.namespaces.Delete(pair.Name, pair.Namespace)
		o.clusters.Delete(pair.Namespace, pair.Name)
	}
	o.mu.Unlock()
	if changed {
		o.Metrics.MovePair(pair.Namespace, countedAs(before, known), countedAs(value, keep))
		o.holdBack(pair, before.HeldBack, value.HeldBack)
		o.StatusChanged(pair.Name)
		o.ScopeChanged(types.NamespacedName{Namespace: pair.Namespace})
	}
}

// IsFailed reports whether the last write of a pair's profile was refused.
func (o *Outcomes) IsFailed(pair types.NamespacedName) bool {
	last, known := o.Get(pair)
	return known && last.Kind == Failed
}

// holdBack tells who counts and reports the profiles whose changes are held back.
func (o *Outcomes) holdBack(pair types.NamespacedName, before, now bool) {
	if before == now {
		return
	}
	more := 1
	if before {
		more = -1
	}
	o.Metrics.HoldBackProfiles(more)
	o.ScopeChanged(types.NamespacedName{Name: pair.Name})
}

// heldBack returns the namespaces in which changes of a cluster's profile are held back.
func (o *Outcomes) heldBack(cluster string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var held []string
	for namespace := range o.namespaces[cluster] {
		if o.pairs[types.NamespacedName{Namespace: namespace, Name: cluster}].HeldBack {
			held = append(held, namespace)
		}
	}
	return held
}

// RemovedInconclusively records that a cluster's profile was removed although these Placements
// may still choose it.
func (o *Outcomes) RemovedInconclusively(
	cluster string, placements []types.NamespacedName, removal Removal,
) {
	for _, placement := range placements {
		o.mu.Lock()
		if o.inconclusive[placement] == nil {
			o.inconclusive[placement] = map[string]Removal{}
		}
		o.inconclusive[placement][cluster] = removal
		o.mu.Unlock()
		o.ScopeChanged(types.NamespacedName{Namespace: placement.Namespace})
	}
}

// inconclusiveIn returns, by Placement of a namespace and by cluster, the recent removals of
// profiles although the Placement may still choose the cluster.
func (o *Outcomes) inconclusiveIn(namespace string, now time.Time) map[string]map[string]Removal {
	o.mu.Lock()
	defer o.mu.Unlock()
	recent := map[string]map[string]Removal{}
	for placement, clusters := range o.inconclusive {
		maps.DeleteFunc(clusters, func(_ string, removal Removal) bool {
			return now.Sub(removal.At) > reportedFor
		})
		if len(clusters) == 0 {
			delete(o.inconclusive, placement)
		} else if placement.Namespace == namespace {
			recent[placement.Name] = maps.Clone(clusters)
		}
	}
	return recent
}

// Overruled records that properties of other writers got the values of claims.
func (o *Outcomes) Overruled(pair types.NamespacedName, names []string, now time.Time) {
	if len(names) == 0 {
		return
	}
	o.mu.Lock()
	if o.overruledAt[pair.Namespace] == nil {
		o.overruledAt[pair.Namespace] = map[string]overruling{}
	}
	o.overruledAt[pair.Namespace][pair.Name] = overruling{at: now, names: names[:min(len(names), profiles.MaxNames+1)]}
	o.mu.Unlock()
	o.ScopeChanged(types.NamespacedName{Namespace: pair.Namespace})
}

// overruledIn returns, by cluster, the properties of a namespace's profiles that were
// overruled recently.
func (o *Outcomes) overruledIn(namespace string, now time.Time) map[string][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	names := map[string][]string{}
	for cluster, last := range o.overruledAt[namespace] {
		if now.Sub(last.at) > reportedFor {
			delete(o.overruledAt[namespace], cluster)
		} else {
			names[cluster] = last.names
		}
	}
	if len(o.overruledAt[namespace]) == 0 {
		delete(o.overruledAt, namespace)
	}
	return names
}

// Get returns the outcome of a pair, and whether it has one.
func (o *Outcomes) Get(pair types.NamespacedName) (Outcome, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	value, ok := o.pairs[pair]
	return value, ok
}

// NamespacesOf returns the namespaces in which a cluster has an outcome.
func (o *Outcomes) NamespacesOf(cluster string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.namespaces.Members(cluster)
}

// ClustersIn returns the clusters that have an outcome in a namespace.
func (o *Outcomes) ClustersIn(namespace string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.clusters.Members(namespace)
}

// All returns every pair that has an outcome.
func (o *Outcomes) All() []types.NamespacedName {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Collect(maps.Keys(o.pairs))
}

// in returns the outcomes of one namespace by cluster.
func (o *Outcomes) in(namespace string) map[string]Outcome {
	o.mu.RLock()
	defer o.mu.RUnlock()
	byCluster := make(map[string]Outcome, len(o.clusters[namespace]))
	for cluster := range o.clusters[namespace] {
		byCluster[cluster] = o.pairs[types.NamespacedName{Namespace: namespace, Name: cluster}]
	}
	return byCluster
}
