package decisions

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// References knows which profiles PlacementDecisions may refer to, and which they refer to.
// The writer of the profiles says the former, in memory: Yes when a profile is complete, No
// before it is deleted. A pair is the profile's namespace and, as its name, the cluster.
//
// While the answer about a pair is unknown, as about every pair after a start, its references
// stay and none is added. References is safe for concurrent use.
type References struct {
	cache client.Reader

	mu sync.Mutex

	// slices is nil until slices are known.
	slices *sliceReader

	// allowed are the pairs that may be referred to.
	allowed map[types.NamespacedName]struct{}

	// refused are, by namespace, the clusters whose profiles must not be referred to, as long as
	// something refers to them.
	refused kube.SetIndex[string, string]

	// adding are the Placements (names) whose slices refer to a pair in a write that is in
	// progress or not in the cache yet.
	adding kube.SetIndex[types.NamespacedName, string]

	// released are told of each pair that must be reconciled.
	released kube.Subscribers[types.NamespacedName]
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
		cache:   cache,
		allowed: map[types.NamespacedName]struct{}{},
		refused: kube.SetIndex[string, string]{},
		adding:  kube.SetIndex[types.NamespacedName, string]{},
	}
}

// Subscribe has enqueue called with each pair that must be reconciled: nothing refers to its
// profile any more, which must not be referred to, or something refers to a profile that does
// not exist. enqueue must return at once.
func (r *References) Subscribe(enqueue func(pair types.NamespacedName)) {
	r.released.Subscribe(enqueue)
}

// Allow records whether slices may refer to a pair's profile: Yes once it exists, with
// everything that consumers need, and No from before it is deleted. After a No, subscribers
// are told when nothing refers to it any more.
func (r *References) Allow(ctx context.Context, pair types.NamespacedName, answer selection.Answer) {
	r.mu.Lock()
	before, first := r.answer(pair), len(r.allowed) == 0
	r.set(pair, answer)
	if answer == selection.No {
		r.release(ctx, pair)
	}
	slices := r.slices
	r.mu.Unlock()
	if answer == selection.Yes && before != answer && slices != nil {
		slices.changed(ctx, pair, first)
	}
}

// set records an answer. It requires the lock.
func (r *References) set(pair types.NamespacedName, answer selection.Answer) {
	delete(r.allowed, pair)
	r.refused.Delete(pair.Namespace, pair.Name)
	switch answer {
	case selection.Yes:
		r.allowed[pair] = struct{}{}
	case selection.No:
		r.refused.Insert(pair.Namespace, pair.Name)
	case selection.Unknown:
	}
}

// answer returns the last one; a No is forgotten once nothing refers to the profile. It requires
// the lock.
func (r *References) answer(pair types.NamespacedName) selection.Answer {
	if _, ok := r.allowed[pair]; ok {
		return selection.Yes
	}
	if r.refused.Has(pair.Namespace, pair.Name) {
		return selection.No
	}
	return selection.Unknown
}

// release enqueues the Placements whose slices refer to a pair, and forgets the No about it if
// there are none. It requires the lock.
func (r *References) release(ctx context.Context, pair types.NamespacedName) {
	referring, known := r.referring(ctx, pair)
	if known && len(referring) == 0 {
		r.set(pair, selection.Unknown)
	}
	for base := range referring {
		r.slices.urgent(ctx, pair.Namespace, base)
	}
}

// Refer returns whether a slice refers to a pair's profile, in the cache or by a write of this
// process that the cache does not show yet. It is Unknown until slices are known. Where
// PlacementDecisions are not served, none does.
func (r *References) Refer(ctx context.Context, pair types.NamespacedName) selection.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch referring, known := r.referring(ctx, pair); {
	case !known:
		return selection.Unknown
	case len(referring) > 0:
		return selection.Yes
	default:
		return selection.No
	}
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
	refused := map[string][]string{}
	for _, namespace := range r.refused.Keys() {
		refused[namespace] = r.refused.Members(namespace)
	}
	r.mu.Unlock()
	for namespace, clusters := range refused {
		r.check(ctx, namespace, clusters)
	}
}

// check tells subscribers which of some clusters' profiles are no longer referred to and must
// not be.
func (r *References) check(ctx context.Context, namespace string, clusters []string) {
	r.mu.Lock()
	var released []types.NamespacedName
	for _, cluster := range clusters {
		if !r.refused.Has(namespace, cluster) {
			continue
		}
		pair := types.NamespacedName{Namespace: namespace, Name: cluster}
		if referring, known := r.referring(ctx, pair); known && len(referring) == 0 {
			r.set(pair, selection.Unknown)
			released = append(released, pair)
		}
	}
	r.mu.Unlock()
	for _, pair := range released {
		r.released.Tell(pair)
	}
}

// of returns whether a pair may be referred to.
func (r *References) of(pair types.NamespacedName) selection.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer(pair)
}

// refusesAny reports whether slices of a namespace refer to profiles that they must not
// refer to.
func (r *References) refusesAny(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.refused[namespace]) > 0
}

// allowsAny reports whether any profile at all may be referred to.
func (r *References) allowsAny() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.allowed) > 0
}

// begin records that the slices of a Placement are about to refer to more clusters. It
// reports false, and records nothing, if one of these may no longer be referred to.
func (r *References) begin(placement types.NamespacedName, clusters []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cluster := range clusters {
		if r.answer(types.NamespacedName{Namespace: placement.Namespace, Name: cluster}) != selection.Yes {
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
