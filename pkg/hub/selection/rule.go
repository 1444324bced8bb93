package selection

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// notReady is how soon to ask again while the rule has not been prepared.
const notReady = time.Second

// Cache is the part of the manager's cache that the rule needs. It must hold what
// CacheOptions specifies.
type Cache interface {
	client.Reader
	client.FieldIndexer
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// Rule applies the rule to the content of a cache. One serves all users. It is safe for
// concurrent use.
type Rule struct {
	cache       Cache
	clock       clock.PassiveClock
	definitions *kube.Definitions
	growth      *kube.Growth
	settling    *settling
	tallies     *tallies
	changes     *changeTracker

	indexed int // number of indexes that Prepare has added
	ready   atomic.Bool
}

// New returns a rule that answers Unknown until it is prepared. live reads the metadata of
// CRDs past every cache.
func New(cache Cache, live client.Reader, clock clock.PassiveClock) *Rule {
	growth := &kube.Growth{}
	return &Rule{
		cache: cache, clock: clock, definitions: kube.NewDefinitions(live, growth, clock), growth: growth,
		settling: newSettling(), tallies: newTallies(), changes: newChangeTracker(),
	}
}

// Prepare makes the cache hold and index everything that the rule reads. The hub must serve
// it: see CRDs and Kinds. After an error it may be called again; it must not be called
// concurrently.
func (r *Rule) Prepare(ctx context.Context) error {
	for ; r.indexed < len(indexes); r.indexed++ {
		index := indexes[r.indexed]
		if err := r.cache.IndexField(ctx, index.object, index.name, index.extract); err != nil {
			return fmt.Errorf("adding index %s: %w", index.name, err)
		}
	}
	// The other kinds got their informers with their indexes. All are needed before the
	// first event, because each route reads several kinds.
	for _, obj := range []client.Object{
		kube.Partial(kube.NamespaceKind), kube.Partial(kube.CRDKind), &addonv1beta1.ManagedClusterAddOn{},
	} {
		if _, err := r.cache.GetInformer(ctx, obj); err != nil {
			return fmt.Errorf("caching %T: %w", obj, err)
		}
	}
	if err := r.followDefinitions(ctx); err != nil {
		return err
	}
	r.ready.Store(true)
	return nil
}

// followDefinitions records from which CRDs the caches were filled.
func (r *Rule) followDefinitions(ctx context.Context) error {
	informer, err := r.cache.GetInformer(ctx, &inventoryv1alpha1.ClusterProfile{})
	if err != nil {
		return fmt.Errorf("caching ClusterProfiles: %w", err)
	}
	followed := []kube.Source{{CRD: ProfileCRD, Informer: informer, OwnWork: true}}
	for _, source := range sources {
		informer, err := r.cache.GetInformer(ctx, source.object)
		if err != nil {
			return fmt.Errorf("caching %T: %w", source.object, err)
		}
		followed = append(followed, kube.Source{CRD: source.crd, Informer: informer})
	}
	restored, err := r.observeRestored(ctx)
	if err != nil {
		return err
	}
	return r.definitions.Follow(ctx, r.cache, restored, followed...)
}

// observeRestored reports whether a profile of ours was created before its cluster: then it
// was made from another object, which was lost.
func (r *Rule) observeRestored(ctx context.Context) (bool, error) {
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	if err := r.cache.List(ctx, profiles, kube.Uncopied); err != nil {
		return false, fmt.Errorf("listing ClusterProfiles: %w", err)
	}
	for i := range profiles.Items {
		profile := &profiles.Items[i]
		if !IsMarked(profile) {
			continue
		}
		cluster, err := kube.Get(ctx, r.cache, types.NamespacedName{Name: profile.Name}, &clusterv1.ManagedCluster{})
		if err != nil {
			return false, err
		}
		if isOlder(profile, cluster) {
			return true, nil
		}
	}
	return false, nil
}

// Growth returns when objects that the rule reads were last added.
func (r *Rule) Growth() *kube.Growth { return r.growth }

// WatchDefinitions registers the controller that follows the CRDs the rule depends on, once
// the rule is prepared. It calls changed when all pairs must be reconciled: a kind is no
// longer served, is served again, or its missing objects begin to count as missing.
func (r *Rule) WatchDefinitions(mgr manager.Manager, controller string, changed func(context.Context)) error {
	return r.definitions.AddTo(mgr, controller, func(ctx context.Context) {
		changed(ctx)
		r.changes.announceDefinitions(ctx)
	})
}

// Ready reports whether the rule is prepared.
func (r *Rule) Ready() bool { return r.ready.Load() }

// Observe reads a pair, the namespace and as its name the cluster, and applies the rule to
// it. Call Settle before acting on the result.
func (r *Rule) Observe(ctx context.Context, pair types.NamespacedName) (Observation, Result, error) {
	o, err := r.observe(ctx, pair)
	if err != nil {
		return Observation{}, Result{}, err
	}
	result := decide(o)
	if result.Answer == Yes || result.Answer == No && !result.ByPlacement {
		r.settling.present(pair)
	}
	return o, result, nil
}

// Settle returns the result on which to act, and how long to wait first; 0 means not at
// all. The caller must wait if the cluster has only just disappeared from the decisions of
// the namespace's Placements, or these are being written. acting says that the caller would
// create something because of a Yes or take something away because of a No. Then the result
// may change: Settle decides an absence from decisions anew, and the result becomes Unknown
// if missing objects may have been deleted with their CRD, which Settle reads live.
//
// Once Settle has returned 0 for an Unknown that rests on Placements, the routes enqueue
// the pair again when one of these changes. Only a controller that watches the routes may
// call it: that it runs proves that all watches have begun.
func (r *Rule) Settle(
	ctx context.Context, pair types.NamespacedName, o Observation, result Result, acting bool,
) (Result, time.Duration, error) {
	r.tallies.follow()
	if acting && result.ByPlacement {
		var wait time.Duration
		var err error
		if o, result, wait, err = r.settleAbsence(ctx, pair, o, result); wait > 0 || err != nil {
			return result, wait, err
		}
	}
	left := r.settling.see(o.placements, r.clock.Now())
	if acting && result.Answer != Unknown {
		result, err := r.confirm(ctx, pair, result)
		return result, 0, err
	}
	switch {
	case len(result.Undecided) == 0:
		return result, 0, nil
	case left > 0:
		return result, left, nil
	}
	for _, placement := range result.Undecided {
		r.settling.await(types.NamespacedName{Namespace: pair.Namespace, Name: placement})
	}
	// An event between the observation and await found nobody waiting, so observe again.
	again, err := r.observePlacements(ctx, pair, r.remembered)
	return result, r.settling.see(again, r.clock.Now()), err
}

// settleAbsence returns how long to wait before something is taken away because a cluster
// is absent from the decisions of Placements. When the time has come, it decides anew from
// the present cache.
func (r *Rule) settleAbsence(
	ctx context.Context, pair types.NamespacedName, o Observation, result Result,
) (Observation, Result, time.Duration, error) {
	now := r.clock.Now()
	r.settling.see(o.placements, now)
	if wait := r.settling.absence(pair, o.placements, now); wait > 0 {
		return o, result, wait, nil
	}
	var err error
	if o.placements, err = r.observePlacements(ctx, pair, r.upToDate); err != nil {
		return o, result, 0, err
	}
	o.lostPlacements = len(o.placements) == 0 && r.settling.isNarrowed(pair.Namespace)
	r.settling.see(o.placements, now)
	if result = decide(o); !result.ByPlacement {
		if result.Answer == Yes {
			r.settling.present(pair)
		}
		return o, result, 0, nil
	}
	return o, result, r.settling.absence(pair, o.placements, now), nil
}

// confirm makes sure that the objects a result rests on were not deleted with their CRD. If
// they may have been, the result becomes Unknown: an event of the CRD will enqueue the
// pair.
func (r *Rule) confirm(ctx context.Context, pair types.NamespacedName, result Result) (Result, error) {
	confirmed, err := r.confirmed(ctx, result)
	if err == nil && len(result.Rests) > 0 && confirmed.Answer == Yes {
		r.settling.widen(pair.Namespace)
	}
	return confirmed, err
}

// confirmed is confirm for results that concern no pair.
func (r *Rule) confirmed(ctx context.Context, result Result) (Result, error) {
	if len(result.Rests) == 0 {
		return result, nil
	}
	confirm := r.definitions.Confirm
	if result.Going {
		confirm = r.definitions.ConfirmPresent
	}
	doubtful, err := confirm(ctx, result.Rests...)
	switch {
	case err != nil:
		return result, err
	case doubtful != "":
		return result.doubt(doubtful), nil
	}
	return result, nil
}

// Track tells subscribers about a pair if its answer or its profile (nil: none) differs
// from the last tracked one.
func (r *Rule) Track(pair types.NamespacedName, answer Answer, profile *inventoryv1alpha1.ClusterProfile) {
	r.changes.track(pair, answer, profile)
}

// Subscribe makes Track call changed for a pair whose answer has changed, or whose profile
// was created, deleted or began to be deleted, or got or lost the mark. changed must return
// at once.
func (r *Rule) Subscribe(changed func(pair types.NamespacedName)) { r.changes.subscribe(changed) }

// SubscribeEarly makes the routes call touched for every pair that an event concerns,
// before the pair is reconciled, and often without any change for it. So withdrawals need
// not wait for the pair's turn. touched must return at once.
func (r *Rule) SubscribeEarly(touched func(pair types.NamespacedName)) {
	r.changes.subscribeEarly(touched)
}

// Selected applies the rule to a pair as the caches are. withdrawing says that a No would
// take something away: then the answer is Unknown while Settle would delay or doubt the
// withdrawal.
func (r *Rule) Selected(ctx context.Context, pair types.NamespacedName, withdrawing bool) (Result, error) {
	if !r.Ready() {
		return Result{Why: "has not been evaluated yet", Again: notReady}, nil
	}
	o, result, err := r.Observe(ctx, pair)
	if err != nil {
		return Result{}, err
	}
	if !o.ProfileAPI {
		return Result{Why: "cannot be selected: the hub does not serve " + ProfileCRD}, nil
	}
	if withdrawing && result.ByPlacement {
		var wait time.Duration
		if _, result, wait, err = r.settleAbsence(ctx, pair, o, result); wait > 0 || err != nil {
			result.Answer, result.Again = Unknown, wait
			return result, err
		}
	}
	switch {
	case !withdrawing, result.Answer == Yes:
		return result, nil
	case result.Answer == Unknown:
		result.Again = r.definitions.Left(CRDs()...)
		return result, nil
	}
	if result, err = r.confirm(ctx, pair, result); result.Answer != No {
		// A pair without a profile may cause no event.
		result.Again = kube.RestoreTime
	}
	return result, err
}

// Namespaces returns the namespaces that have a ClusterProfile with a cluster's name,
// whoever made it. It fails until the rule is prepared.
func (r *Rule) Namespaces(ctx context.Context, cluster string) ([]string, error) {
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	if err := r.cache.List(ctx, profiles, client.MatchingFields{IndexProfileByName: cluster}, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("finding the ClusterProfiles of cluster %s: %w", cluster, err)
	}
	namespaces := make([]string, 0, len(profiles.Items))
	for i := range profiles.Items {
		namespaces = append(namespaces, profiles.Items[i].Namespace)
	}
	return namespaces, nil
}
