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

	// Metrics count the outcomes.
	Metrics *metrics.Metrics

	mu    sync.RWMutex
	pairs map[types.NamespacedName]Outcome
	// namespaces, by cluster, and clusters, by namespace, hold the keys of pairs.
	namespaces kube.SetIndex[string, string]
	clusters   kube.SetIndex[string, string]

	// inconclusive holds the latest removals of profiles although a Placement may still choose the
	// cluster, and whether the cluster lacked the addon, not the Placement's decision.
	inconclusive recent[removal, bool]

	// overruled holds, by cluster, which properties of other writers were overruled by claims.
	overruled recent[string, []string]
}

// removal is of the profile of a cluster, after the longest wait for a Placement.
type removal struct{ placement, cluster string }

// reportedFor is for how long what happened once is reported.
const reportedFor = 10 * time.Minute

// recent holds what happened in namespaces within reportedFor, by what it was about.
type recent[K comparable, V any] map[string]map[K]happened[V]

type happened[V any] struct {
	at   time.Time
	what V
}

func (r recent[K, V]) add(namespace string, about K, what V, now time.Time) {
	if r[namespace] == nil {
		r[namespace] = map[K]happened[V]{}
	}
	r[namespace][about] = happened[V]{at: now, what: what}
}

// in returns what happened in a namespace, and forgets what is no longer reported.
func (r recent[K, V]) in(namespace string, now time.Time) map[K]V {
	maps.DeleteFunc(r[namespace], func(_ K, last happened[V]) bool { return now.Sub(last.at) > reportedFor })
	if len(r[namespace]) == 0 {
		delete(r, namespace)
	}
	lately := map[K]V{}
	for about, last := range r[namespace] {
		lately[about] = last.what
	}
	return lately
}

// NewOutcomes returns empty outcomes, of whose changes no one is notified.
func NewOutcomes() *Outcomes {
	return &Outcomes{
		StatusChanged: func(string) {}, ScopeChanged: func(types.NamespacedName) {},

		pairs:        map[types.NamespacedName]Outcome{},
		namespaces:   kube.SetIndex[string, string]{},
		clusters:     kube.SetIndex[string, string]{},
		inconclusive: recent[removal, bool]{},
		overruled:    recent[string, []string]{},
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
// may still choose it. byAddon is true if the cluster lacked the addon, not their decision.
func (o *Outcomes) RemovedInconclusively(
	cluster string, placements []types.NamespacedName, byAddon bool, now time.Time,
) {
	for _, placement := range placements {
		o.mu.Lock()
		o.inconclusive.add(placement.Namespace, removal{placement.Name, cluster}, byAddon, now)
		o.mu.Unlock()
		o.ScopeChanged(types.NamespacedName{Namespace: placement.Namespace})
	}
}

// inconclusiveIn returns, by Placement of a namespace and by cluster, the recent removals of
// profiles although the Placement may still choose the cluster, and whether that lacked the addon.
func (o *Outcomes) inconclusiveIn(namespace string, now time.Time) map[string]map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	byPlacement := map[string]map[string]bool{}
	for of, byAddon := range o.inconclusive.in(namespace, now) {
		if byPlacement[of.placement] == nil {
			byPlacement[of.placement] = map[string]bool{}
		}
		byPlacement[of.placement][of.cluster] = byAddon
	}
	return byPlacement
}

// Overruled records that properties of other writers got the values of claims.
func (o *Outcomes) Overruled(pair types.NamespacedName, names []string, now time.Time) {
	if len(names) == 0 {
		return
	}
	o.mu.Lock()
	o.overruled.add(pair.Namespace, pair.Name, names[:min(len(names), profiles.MaxNames+1)], now)
	o.mu.Unlock()
	o.ScopeChanged(types.NamespacedName{Namespace: pair.Namespace})
}

// overruledIn returns, by cluster, the properties of a namespace's profiles that were
// overruled recently.
func (o *Outcomes) overruledIn(namespace string, now time.Time) map[string][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.overruled.in(namespace, now)
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
