package inventory

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// outcomes holds, in memory, the outcome of each pair, and notifies the reporters: for a
// cluster, its addon's condition; for a namespace, its events. A pair for which nobody
// expects a profile has no entry.
type outcomes struct {
	statusChanged func(cluster string) // nil: not reported
	reportTrigger watch.Trigger        // by the scope of a Reporter
	metrics       *metrics.Metrics     // nil: not counted

	mu    sync.RWMutex
	pairs map[types.NamespacedName]outcome
	// namespaces, by cluster, and clusters, by namespace, hold the keys of pairs.
	namespaces kube.SetIndex[string, string]
	clusters   kube.SetIndex[string, string]

	// inconclusive holds, by Placement and cluster, the latest removals of profiles although
	// the Placement may still choose the cluster.
	inconclusive map[types.NamespacedName]map[string]inconclusiveRemoval

	// overruledAt holds, by namespace and cluster, when which properties of other writers were
	// last overruled by claims.
	overruledAt map[string]map[string]overruling
}

// overruling is a write that gave properties of other writers the values of claims.
type overruling struct {
	at    time.Time
	names []string
}

// inconclusiveRemoval is the removal of a profile after the longest wait for a Placement.
type inconclusiveRemoval struct {
	at time.Time

	// byAddon is true if the cluster lacked the addon, not the Placement's decision.
	byAddon bool
}

// reportedFor is for how long what happened once is reported.
const reportedFor = 10 * time.Minute

// reportDelay turns a burst of changes in a namespace into one event.
const reportDelay = time.Second

func newOutcomes() *outcomes {
	return &outcomes{
		reportTrigger: watch.Trigger{Delay: reportDelay},
		pairs:         map[types.NamespacedName]outcome{},
		namespaces:    kube.SetIndex[string, string]{},
		clusters:      kube.SetIndex[string, string]{},
		inconclusive:  map[types.NamespacedName]map[string]inconclusiveRemoval{},
		overruledAt:   map[string]map[string]overruling{},
	}
}

// set records a pair's outcome.
func (o *outcomes) set(pair types.NamespacedName, value outcome) {
	o.mu.Lock()
	before, known := o.pairs[pair]
	changed := !known || !reflect.DeepEqual(before, value)
	if changed {
		o.pairs[pair] = value
		o.namespaces.Insert(pair.Name, pair.Namespace)
		o.clusters.Insert(pair.Namespace, pair.Name)
	}
	o.mu.Unlock()
	if changed {
		o.metrics.MovePair(pair.Namespace, countedAs(before, known), countedAs(value, true))
		o.holdBack(pair, before.heldBack, value.heldBack)
		o.enqueueReports(pair)
	}
}

// forget drops a pair for which nobody expects a profile any more.
func (o *outcomes) forget(pair types.NamespacedName) {
	o.mu.Lock()
	before, known := o.pairs[pair]
	if known {
		delete(o.pairs, pair)
		o.namespaces.Delete(pair.Name, pair.Namespace)
		o.clusters.Delete(pair.Namespace, pair.Name)
	}
	o.mu.Unlock()
	if known {
		o.metrics.MovePair(pair.Namespace, countedAs(before, true), metrics.Pair{})
		o.holdBack(pair, before.heldBack, false)
		o.enqueueReports(pair)
	}
}

// isFailed reports whether the last write of a pair's profile was refused.
func (o *outcomes) isFailed(pair types.NamespacedName) bool {
	last, known := o.get(pair)
	return known && last.kind == failed
}

// holdBack tells who counts and reports the profiles whose changes are held back.
func (o *outcomes) holdBack(pair types.NamespacedName, before, now bool) {
	if before == now {
		return
	}
	more := 1
	if before {
		more = -1
	}
	o.metrics.HoldBackProfiles(more)
	o.reportTrigger.Enqueue(types.NamespacedName{Name: pair.Name})
}

// heldBack returns the namespaces in which changes of a cluster's profile are held back.
func (o *outcomes) heldBack(cluster string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var held []string
	for namespace := range o.namespaces[cluster] {
		if o.pairs[types.NamespacedName{Namespace: namespace, Name: cluster}].heldBack {
			held = append(held, namespace)
		}
	}
	return held
}

// removedInconclusively records that a cluster's profile was removed although these Placements
// may still choose it.
func (o *outcomes) removedInconclusively(
	cluster string, placements []types.NamespacedName, removal inconclusiveRemoval,
) {
	for _, placement := range placements {
		o.mu.Lock()
		if o.inconclusive[placement] == nil {
			o.inconclusive[placement] = map[string]inconclusiveRemoval{}
		}
		o.inconclusive[placement][cluster] = removal
		o.mu.Unlock()
		o.reportTrigger.Enqueue(types.NamespacedName{Namespace: placement.Namespace})
	}
}

// inconclusiveIn returns, by Placement of a namespace and by cluster, the recent removals of
// profiles although the Placement may still choose the cluster.
func (o *outcomes) inconclusiveIn(namespace string, now time.Time) map[string]map[string]inconclusiveRemoval {
	o.mu.Lock()
	defer o.mu.Unlock()
	recent := map[string]map[string]inconclusiveRemoval{}
	for placement, clusters := range o.inconclusive {
		maps.DeleteFunc(clusters, func(_ string, removal inconclusiveRemoval) bool {
			return now.Sub(removal.at) > reportedFor
		})
		if len(clusters) == 0 {
			delete(o.inconclusive, placement)
		} else if placement.Namespace == namespace {
			recent[placement.Name] = maps.Clone(clusters)
		}
	}
	return recent
}

// overruled records that properties of other writers got the values of claims.
func (o *outcomes) overruled(pair types.NamespacedName, names []string, now time.Time) {
	if len(names) == 0 {
		return
	}
	o.mu.Lock()
	if o.overruledAt[pair.Namespace] == nil {
		o.overruledAt[pair.Namespace] = map[string]overruling{}
	}
	o.overruledAt[pair.Namespace][pair.Name] = overruling{at: now, names: names[:min(len(names), maxNames+1)]}
	o.mu.Unlock()
	o.reportTrigger.Enqueue(types.NamespacedName{Namespace: pair.Namespace})
}

// overruledIn returns, by cluster, the properties of a namespace's profiles that were
// overruled recently.
func (o *outcomes) overruledIn(namespace string, now time.Time) map[string][]string {
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

func (o *outcomes) enqueueReports(pair types.NamespacedName) {
	o.enqueueStatus(pair.Name)
	o.reportTrigger.Enqueue(types.NamespacedName{Namespace: pair.Namespace})
}

// enqueueStatus announces that the condition of a cluster, or of every cluster if the name
// is empty, may have changed.
func (o *outcomes) enqueueStatus(cluster string) {
	if o.statusChanged != nil {
		o.statusChanged(cluster)
	}
}

func (o *outcomes) get(pair types.NamespacedName) (outcome, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	value, ok := o.pairs[pair]
	return value, ok
}

// NamespacesOf returns the namespaces in which a cluster has an outcome.
func (o *outcomes) NamespacesOf(cluster string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.namespaces.Members(cluster)
}

// ClustersIn returns the clusters that have an outcome in a namespace.
func (o *outcomes) ClustersIn(namespace string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.clusters.Members(namespace)
}

// All returns every pair that has an outcome.
func (o *outcomes) All() []types.NamespacedName {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Collect(maps.Keys(o.pairs))
}

// in returns the outcomes of one namespace by cluster.
func (o *outcomes) in(namespace string) map[string]outcome {
	o.mu.RLock()
	defer o.mu.RUnlock()
	byCluster := make(map[string]outcome, len(o.clusters[namespace]))
	for cluster := range o.clusters[namespace] {
		byCluster[cluster] = o.pairs[types.NamespacedName{Namespace: namespace, Name: cluster}]
	}
	return byCluster
}
