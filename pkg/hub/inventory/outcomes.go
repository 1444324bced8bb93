package inventory

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// outcomes remembers, in memory, how each pair came out, and tells the
// controllers that report it when that changes: about a cluster on its addon,
// about a namespace in events. A pair nobody has a question about has no entry.
type outcomes struct {
	clusters   notifier
	namespaces notifier

	mu    sync.RWMutex
	pairs map[types.NamespacedName]outcome
	// byCluster and byNamespace hold the keys of pairs again.
	byCluster   map[string]map[string]struct{}
	byNamespace map[string]map[string]struct{}
}

// reportDelay lets a burst of changes in a namespace become one event.
const reportDelay = time.Second

func newOutcomes() *outcomes {
	return &outcomes{
		namespaces:  notifier{delay: reportDelay},
		pairs:       map[types.NamespacedName]outcome{},
		byCluster:   map[string]map[string]struct{}{},
		byNamespace: map[string]map[string]struct{}{},
	}
}

// set records a pair's outcome.
func (o *outcomes) set(pair types.NamespacedName, value outcome) {
	o.mu.Lock()
	before, known := o.pairs[pair]
	changed := !known || !reflect.DeepEqual(before, value)
	if changed {
		o.pairs[pair] = value
		addTo(o.byCluster, pair.Name, pair.Namespace)
		addTo(o.byNamespace, pair.Namespace, pair.Name)
	}
	o.mu.Unlock()
	if changed {
		o.notify(pair)
	}
}

// forget drops a pair nobody has a question about any more.
func (o *outcomes) forget(pair types.NamespacedName) {
	o.mu.Lock()
	_, known := o.pairs[pair]
	if known {
		delete(o.pairs, pair)
		removeFrom(o.byCluster, pair.Name, pair.Namespace)
		removeFrom(o.byNamespace, pair.Namespace, pair.Name)
	}
	o.mu.Unlock()
	if known {
		o.notify(pair)
	}
}

func (o *outcomes) notify(pair types.NamespacedName) {
	o.clusters.notify(pair.Name)
	o.namespaces.notify(pair.Namespace)
}

func (o *outcomes) get(pair types.NamespacedName) (outcome, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	value, ok := o.pairs[pair]
	return value, ok
}

// namespacesOf returns where a cluster has an outcome.
func (o *outcomes) namespacesOf(cluster string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return keys(o.byCluster[cluster])
}

// clustersIn returns which clusters have an outcome in a namespace.
func (o *outcomes) clustersIn(namespace string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return keys(o.byNamespace[namespace])
}

// all returns every pair that has an outcome.
func (o *outcomes) all() []types.NamespacedName {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Collect(maps.Keys(o.pairs))
}

// in returns the outcomes of one namespace by cluster.
func (o *outcomes) in(namespace string) map[string]outcome {
	o.mu.RLock()
	defer o.mu.RUnlock()
	byCluster := make(map[string]outcome, len(o.byNamespace[namespace]))
	for cluster := range o.byNamespace[namespace] {
		byCluster[cluster] = o.pairs[types.NamespacedName{Namespace: namespace, Name: cluster}]
	}
	return byCluster
}

func addTo(index map[string]map[string]struct{}, key, member string) {
	if index[key] == nil {
		index[key] = map[string]struct{}{}
	}
	index[key][member] = struct{}{}
}

func removeFrom(index map[string]map[string]struct{}, key, member string) {
	delete(index[key], member)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

func keys(set map[string]struct{}) []string {
	list := make([]string, 0, len(set))
	for key := range set {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// notifier is a source of a controller's requests that another controller feeds
// by name. What is notified before the controller starts is dropped: a starting
// controller looks at everything anyway.
type notifier struct {
	delay time.Duration

	mu    sync.RWMutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start implements source.Source.
func (n *notifier) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = queue
	return nil
}

func (n *notifier) notify(name string) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.queue != nil {
		n.queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, n.delay)
	}
}
