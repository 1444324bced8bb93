package decisions

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// References knows which profiles PlacementDecisions may refer to, and which they refer to.
// The writer of the profiles tells it, in memory: Admit when a profile is complete,
// Withdraw before it is deleted. A pair is the profile's namespace and, as its name, the
// cluster.
//
// While nothing is known about a pair, as about every pair after a start, its references
// stay and none is added. References is safe for concurrent use.
type References struct {
	cache client.Reader

	mu sync.Mutex

	// slices is nil until slices are known.
	slices *sliceReader

	// admitted are the pairs that may be referred to.
	admitted map[types.NamespacedName]struct{}

	// withdrawn are, by namespace, the clusters whose profiles are about to be deleted or
	// are deleted, and that slices still refer to.
	withdrawn kube.SetIndex[string, string]

	// requested are the pairs that slices refer to, and about which nothing is known
	// although subscribers were asked to reconcile them.
	requested map[types.NamespacedName]struct{}

	// adding are the Placements (names) whose slices refer to a pair in a write that is in
	// progress or not in the cache yet.
	adding kube.SetIndex[types.NamespacedName, string]

	subscribers []func(types.NamespacedName)
}

// sliceReader finds the slices once they are known.
type sliceReader struct {
	served  func(context.Context) bool // whether the cache can be trusted
	changed func(ctx context.Context, pair types.NamespacedName, first bool)
	urgent  func(ctx context.Context, namespace, base string)
}

// NewReferences returns References that know nothing yet. cache is the manager's.
func NewReferences(cache client.Reader) *References {
	return &References{
		cache:     cache,
		admitted:  map[types.NamespacedName]struct{}{},
		withdrawn: kube.SetIndex[string, string]{},
		requested: map[types.NamespacedName]struct{}{},
		adding:    kube.SetIndex[types.NamespacedName, string]{},
	}
}

// Subscribe has enqueue called with each pair that must be reconciled: nothing refers to
// its withdrawn profile any more, or something refers to a profile about which nothing is
// known. enqueue must return at once.
func (r *References) Subscribe(enqueue func(pair types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, enqueue)
}

// Admit records that a pair's profile exists, with everything that consumers need.
func (r *References) Admit(ctx context.Context, pair types.NamespacedName) {
	r.mu.Lock()
	_, known := r.admitted[pair]
	first := len(r.admitted) == 0
	r.admitted[pair] = struct{}{}
	r.withdrawn.Delete(pair.Namespace, pair.Name)
	delete(r.requested, pair)
	slices := r.slices
	r.mu.Unlock()
	if !known && slices != nil {
		slices.changed(ctx, pair, first)
	}
}

// Withdraw records that a pair's profile is about to be deleted, or is deleted. It reports
// whether nothing refers to it any more; otherwise subscribers are told when that is so.
// Where PlacementDecisions are not served, nothing does.
func (r *References) Withdraw(ctx context.Context, pair types.NamespacedName) (done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.admitted, pair)
	delete(r.requested, pair)
	referring, known := r.referring(ctx, pair)
	if known && len(referring) == 0 {
		r.withdrawn.Delete(pair.Namespace, pair.Name)
		return true
	}
	r.withdrawn.Insert(pair.Namespace, pair.Name)
	for base := range referring {
		r.slices.urgent(ctx, pair.Namespace, base)
	}
	return false
}

// Hold records that nothing is known about a pair's profile now: its references stay, and
// none is added.
func (r *References) Hold(pair types.NamespacedName) {
	r.Forget(pair)
	r.Keep(pair)
}

// Forget records that a pair's profile does not exist, or is being deleted: unless it was
// withdrawn, its references stay; none is added.
func (r *References) Forget(pair types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.admitted, pair)
	delete(r.requested, pair)
}

// Keep records that a pair's profile stays after all, if it was withdrawn.
func (r *References) Keep(pair types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdrawn.Delete(pair.Namespace, pair.Name)
}

// Refers reports whether anything is known to refer to a pair's profile.
func (r *References) Refers(ctx context.Context, pair types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	referring, known := r.referring(ctx, pair)
	return known && len(referring) > 0
}

// referring returns the bases of the slices that refer to a pair, or are about to. known is
// false while the slices are unknown although the hub serves them. It requires the lock.
func (r *References) referring(ctx context.Context, pair types.NamespacedName) (bases map[string]struct{}, known bool) {
	if r.slices == nil {
		served, err := kube.IsServed(ctx, r.cache, DecisionCRD)
		return nil, err == nil && !served
	}
	if !r.slices.served(ctx) {
		return nil, true
	}
	bases = map[string]struct{}{}
	for placement := range r.adding[pair] {
		bases[baseOf(placement)] = struct{}{}
	}
	list := &inventoryv1alpha1.PlacementDecisionList{}
	matching := client.MatchingFields{IndexSliceByCluster: pair.Name}
	if err := r.cache.List(ctx, list, client.InNamespace(pair.Namespace), matching, kube.Uncopied); err != nil {
		return bases, false // the cache is being shut down
	}
	for i := range list.Items {
		bases[parseName(list.Items[i].Name)] = struct{}{}
	}
	return bases, true
}

// follow makes the slices known.
func (r *References) follow(slices sliceReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slices = &slices
}

// checkAll is check for everything.
func (r *References) checkAll(ctx context.Context) {
	r.mu.Lock()
	withdrawn := map[string][]string{}
	for _, namespace := range r.withdrawn.Keys() {
		withdrawn[namespace] = r.withdrawn.Members(namespace)
	}
	r.mu.Unlock()
	for namespace, clusters := range withdrawn {
		r.check(ctx, namespace, clusters)
	}
}

// check tells subscribers which of some clusters' withdrawn profiles are no longer referred
// to.
func (r *References) check(ctx context.Context, namespace string, clusters []string) {
	r.mu.Lock()
	var released []types.NamespacedName
	for _, cluster := range clusters {
		if !r.withdrawn.Has(namespace, cluster) {
			continue
		}
		pair := types.NamespacedName{Namespace: namespace, Name: cluster}
		if referring, known := r.referring(ctx, pair); known && len(referring) == 0 {
			r.withdrawn.Delete(namespace, cluster)
			released = append(released, pair)
		}
	}
	subscribers := r.subscribers
	r.mu.Unlock()
	tell(subscribers, released)
}

// request has subscribers reconcile pairs that slices refer to and about which nothing is
// known, each once.
func (r *References) request(pairs []types.NamespacedName) {
	r.mu.Lock()
	var unknown []types.NamespacedName
	for _, pair := range pairs {
		_, requested := r.requested[pair]
		_, admitted := r.admitted[pair]
		if requested || admitted || r.withdrawn.Has(pair.Namespace, pair.Name) {
			continue
		}
		r.requested[pair] = struct{}{}
		unknown = append(unknown, pair)
	}
	subscribers := r.subscribers
	r.mu.Unlock()
	tell(subscribers, unknown)
}

func tell(subscribers []func(types.NamespacedName), pairs []types.NamespacedName) {
	for _, enqueue := range subscribers {
		for _, pair := range pairs {
			enqueue(pair)
		}
	}
}

// standing reports whether a pair may be referred to, and whether it must not be.
func (r *References) standing(pair types.NamespacedName) (admitted, withdrawn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, admitted = r.admitted[pair]
	return admitted, r.withdrawn.Has(pair.Namespace, pair.Name)
}

// hasWithdrawn reports whether withdrawn profiles of a namespace are still referred to.
func (r *References) hasWithdrawn(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.withdrawn[namespace]) > 0
}

// hasAdmitted reports whether anything may be referred to at all.
func (r *References) hasAdmitted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.admitted) > 0
}

// begin records that the slices of a Placement are about to refer to more clusters. It
// reports false, and records nothing, if one of these may no longer be referred to.
func (r *References) begin(placement types.NamespacedName, clusters []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cluster := range clusters {
		pair := types.NamespacedName{Namespace: placement.Namespace, Name: cluster}
		if _, ok := r.admitted[pair]; !ok {
			return false
		}
	}
	for _, cluster := range clusters {
		r.adding.Insert(types.NamespacedName{Namespace: placement.Namespace, Name: cluster}, placement.Name)
	}
	return true
}

// seen records that the cache shows the write that begin announced.
func (r *References) seen(placement types.NamespacedName, clusters []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cluster := range clusters {
		r.adding.Delete(types.NamespacedName{Namespace: placement.Namespace, Name: cluster}, placement.Name)
	}
}
