package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// notReady is the result until the rule is prepared, and then subscribers are notified.
var notReady = rule.Result{Why: "has not been evaluated yet", Untrusted: true, NotReady: true}

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
	// ExclusiveSetsOnly withholds what is only in sets of other types, whose clusters may
	// choose them by their labels. It must be set before Prepare.
	ExclusiveSetsOnly bool

	cache       Cache
	clock       clock.PassiveClock
	definitions *watch.Definitions
	settling    *settling
	changes     *changeTracker

	// What was read before something was created says nothing about whether it may be withdrawn.
	live, granting *liveReads

	indexed        int         // number of indexes that Prepare has added
	followsInstall bool        // Prepare has added the handler of the install strategy
	prepared       atomic.Bool // except ClusterProfiles
	ready          atomic.Bool
}

// New returns a rule that answers Unknown until it is prepared. live reads Placements with
// their decisions live.
func New(cache Cache, live client.Reader, definitions *watch.Definitions, clock clock.PassiveClock) *Rule {
	rule := &Rule{
		cache: cache, clock: clock, definitions: definitions,
		settling: newSettling(), changes: &changeTracker{},
		live: newLiveReads(live, clock), granting: newLiveReads(live, clock),
	}
	definitions.Subscribe(rule.changes.definitions.Tell, CRDs()...)
	return rule
}

// Prepare makes the cache hold and index everything that the rule reads. The hub must serve
// it: see CRDs and Kinds. Then it notifies the subscribers of SubscribeDefinitions. After an
// error it may be called again; it must not be called concurrently.
func (r *Rule) Prepare(ctx context.Context) error { return r.prepare(ctx, true) }

// PrepareWithoutProfiles is Prepare for a hub that does not serve ClusterProfiles. Then the
// rule says No where that is so, and otherwise Unknown. Once they are served, Prepare must be
// called, too.
func (r *Rule) PrepareWithoutProfiles(ctx context.Context) error { return r.prepare(ctx, false) }

func (r *Rule) prepare(ctx context.Context, profiles bool) error {
	// Begin to fill the cache with all kinds before the first is awaited. Each takes a second or two,
	// because an API server that streams a list says only with its next bookmark that the list is
	// complete.
	if err := r.informers(ctx, profiles, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	needed := routes.Indexes
	if !profiles {
		needed = needed[:len(needed)-routes.ProfileIndexes]
	}
	for ; r.indexed < len(needed); r.indexed++ {
		index := needed[r.indexed]
		if err := r.cache.IndexField(ctx, index.Object, index.Name, index.Extract); err != nil {
			return fmt.Errorf("adding index %s: %w", index.Name, err)
		}
	}
	// All are needed before the first event, because each route reads several kinds.
	if err := r.informers(ctx, profiles); err != nil {
		return err
	}
	definitions, err := r.cache.GetInformer(ctx, &addonv1beta1.ClusterManagementAddOn{})
	if err != nil {
		return fmt.Errorf("caching ClusterManagementAddOns: %w", err)
	}
	if !r.followsInstall {
		if _, err := definitions.AddEventHandler(kube.OnEvent(r.onInstallStrategy)); err != nil {
			return fmt.Errorf("following the install strategy: %w", err)
		}
		r.followsInstall = true
	}
	if profiles {
		if err := r.followProfiles(ctx); err != nil {
			return err
		}
	}
	if !r.prepared.Load() {
		if err := r.followDefinitions(ctx, profiles); err != nil {
			return err
		}
		namespaces, err := r.namespacesWithProfiles(ctx, profiles)
		if err != nil {
			return err
		}
		publishing, err := r.Publishing(ctx, "")
		if err != nil {
			return err
		}
		r.settling.start(r.clock.Now(), publishing, namespaces)
	}
	r.prepared.Store(true)
	if profiles {
		r.ready.Store(true)
	}
	r.changes.definitions.Tell(ctx)
	return nil
}

// informers makes the cache hold every kind that the rule reads.
func (r *Rule) informers(ctx context.Context, profiles bool, opts ...cache.InformerGetOption) error {
	kinds := []client.Object{
		kube.Partial(kube.NamespaceKind), kube.Partial(kube.CRDKind), &addonv1beta1.ClusterManagementAddOn{},
	}
	for _, source := range sources {
		kinds = append(kinds, source.object)
	}
	if profiles {
		kinds = append(kinds, &inventoryv1alpha1.ClusterProfile{})
	}
	for _, obj := range kinds {
		if _, err := r.cache.GetInformer(ctx, obj, opts...); err != nil {
			return fmt.Errorf("caching %T: %w", obj, err)
		}
	}
	return nil
}

// namespacesWithProfiles returns the namespaces that have ClusterProfiles; none while these
// are not served.
func (r *Rule) namespacesWithProfiles(ctx context.Context, served bool) (map[string]struct{}, error) {
	if !served {
		return nil, nil
	}
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	if err := r.cache.List(ctx, profiles, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing ClusterProfiles: %w", err)
	}
	namespaces := map[string]struct{}{}
	for i := range profiles.Items {
		namespaces[profiles.Items[i].Namespace] = struct{}{}
	}
	return namespaces, nil
}

// followProfiles records from which CRD the cache of ClusterProfiles was filled.
func (r *Rule) followProfiles(ctx context.Context) error {
	informer, err := r.cache.GetInformer(ctx, &inventoryv1alpha1.ClusterProfile{})
	if err != nil {
		return fmt.Errorf("caching ClusterProfiles: %w", err)
	}
	return r.definitions.Follow(ctx, r.cache, false, watch.Source{CRD: rule.ProfileCRD, Informer: informer, OwnWork: true})
}

// followDefinitions records from which CRDs the other caches were filled. While profiles
// exist that cannot be read, nothing shows that no restore is in progress.
func (r *Rule) followDefinitions(ctx context.Context, profiles bool) error {
	var followed []watch.Source
	for _, source := range sources {
		informer, err := r.cache.GetInformer(ctx, source.object)
		if err != nil {
			return fmt.Errorf("caching %T: %w", source.object, err)
		}
		followed = append(followed, watch.Source{CRD: source.crd, Informer: informer})
	}
	observeRestored := r.observeRestored
	if !profiles {
		observeRestored = r.observeProfileCRD
	}
	restored, err := observeRestored(ctx)
	if err != nil {
		return err
	}
	return r.definitions.Follow(ctx, r.cache, restored, followed...)
}

// observeProfileCRD reports whether there may be profiles.
func (r *Rule) observeProfileCRD(ctx context.Context) (bool, error) {
	crd, err := kube.Get(ctx, r.cache, types.NamespacedName{Name: rule.ProfileCRD}, kube.Partial(kube.CRDKind))
	return crd != nil, err
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
		if !rule.IsMarked(profile) {
			continue
		}
		cluster, err := kube.Get(ctx, r.cache, types.NamespacedName{Name: profile.Name}, &clusterv1.ManagedCluster{})
		if err != nil {
			return false, err
		}
		if rule.IsOlder(profile, cluster) {
			return true, nil
		}
	}
	return false, nil
}

// Ready reports whether the rule is prepared.
func (r *Rule) Ready() bool { return r.ready.Load() }

// Observe reads a pair, the namespace and as its name the cluster, and applies the rule to
// it. Call Settle before acting on the result.
func (r *Rule) Observe(ctx context.Context, pair types.NamespacedName) (rule.Observation, rule.Result, error) {
	o, err := r.observe(ctx, pair)
	if err != nil {
		return rule.Observation{}, rule.Result{}, err
	}
	result := rule.Pair(o)
	if o.InInventory() {
		r.settling.installing.Over(pair)
	}
	if result.Answer != rule.Unknown && !result.ByPlacement && !result.ByAddon {
		r.settling.Present(pair)
	}
	return o, result, nil
}

// Settle returns the result on which to act, and how long to wait first; 0 means not at all.
// The caller must wait if the cluster has only just disappeared from the decisions of the
// namespace's Placements, or these are being written. acting says that the caller would
// create something because of a Yes or take something away because of a No. Then the result
// may change: Settle decides an absence from decisions, and that of the addon, again. The
// result becomes Unknown if slices cannot tell a cluster that moves from one that was
// removed, if a Placement has only just vanished or the manager has only just started, and if
// missing objects may have been deleted with their CRD or the cache may be older than this
// process, for which Settle reads live. If Again is set then, no event may come.
//
// Once Settle has returned 0 for an Unknown that rests on Placements, the routes enqueue
// the pair again when one of these changes. Only a controller that watches the routes may
// call it: that it runs proves that all watches have begun.
func (r *Rule) Settle(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result, acting bool,
) (rule.Result, time.Duration, error) {
	if acting {
		var wait time.Duration
		var err error
		if o, result, wait, err = r.settleAbsence(ctx, pair, o, result, rule.LongestMove); wait > 0 || err != nil {
			return result, wait, err
		}
		if result, err = r.settleWidening(ctx, pair, o, result); err != nil {
			return result, 0, err
		}
	}
	left := r.settling.see(o.Placements, r.clock.Now())
	if acting && result.Answer != rule.Unknown {
		result, err := r.confirm(ctx, pair, o, result)
		return result, 0, err
	}
	switch {
	case len(result.Undecided) == 0:
		return result, 0, nil
	case left > 0:
		return result, left, nil
	}
	r.settling.await(pair, result.Undecided...)
	// An event between the observation and await found no waiting pair, so observe again.
	again, err := r.observePlacements(ctx, pair)
	return result, r.settling.see(again, r.clock.Now()), err
}

// confirm makes sure that the objects a result rests on were not deleted with their CRD. If
// they may have been, the result becomes Unknown: an event of the CRD will enqueue the
// pair. They are also read live while the cache may be older than this process, and if the
// result is pieced together. Placements are read live as well before their absence alone counts,
// in a namespace that requires one. A Yes must hold on the hub, as in Granted.
func (r *Rule) confirm(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result,
) (rule.Result, error) {
	confirmed, err := r.confirmed(ctx, result)
	switch {
	case err != nil:
	case confirmed.Answer == rule.Yes:
		confirmed, err = r.granted(ctx, pair, o, confirmed)
	case confirmed.Answer != rule.No || result.Going:
	case o.Lagging.Any(result.Rests...), isPieced(o, result):
		confirmed, err = r.decideLive(ctx, pair, o, confirmed, r.clock.Now())
	case len(result.Rests) == 1 && result.Rests[0] == rule.PlacementCRD:
		confirmed, err = r.decideLive(ctx, pair, o, confirmed, r.live.recent(time.Time{}))
	}
	if err == nil && slices.Contains(result.Rests, rule.PlacementCRD) && confirmed.Answer != rule.Unknown {
		r.settling.deleted(pair.Namespace, r.clock.Now())
	}
	return confirmed, err
}

// isPieced reports whether a No joins what the caches of bindings, sets and clusters show, or those of
// addons and of the install strategy, which have separate watches. When a second set was bound before
// the cluster moved there, a set unbound after it had left that, or the strategy changed after it had
// created an addon again, they may show together what the hub never was.
func isPieced(o rule.Observation, no rule.Result) bool {
	return slices.Contains(no.Rests, rule.SetCRD) && !slices.Contains(no.Rests, rule.PlacementCRD) ||
		slices.Contains(no.Rests, rule.AddonCRD) && o.Addon == nil
}

// confirmed is confirm for results that concern no pair.
func (r *Rule) confirmed(ctx context.Context, result rule.Result) (rule.Result, error) {
	confirm := r.definitions.Confirm
	if result.Going {
		confirm = r.definitions.ConfirmPresent
	}
	doubtful, err := confirm(ctx, result.Rests...)
	if doubtful != "" {
		result = result.Doubt(doubtful)
	}
	return result, err
}

// Routes returns the routes for a controller that remembers some pairs.
func (r *Rule) Routes(remembered routes.Remembered) routes.Routes {
	return routes.Routes{
		Reader: r.cache, Settling: r.settling, IsInstall: r.isInstall, Remembered: remembered,
		Touched: r.changes.early.Tell, InstallChanged: r.changes.install.Tell,
	}
}

// Track notifies subscribers of a pair if its answer or its profile (nil: none) differs from
// the last tracked one.
func (r *Rule) Track(pair types.NamespacedName, answer rule.Answer, profile *inventoryv1alpha1.ClusterProfile) {
	r.changes.track(pair, answer, profile)
}

// Subscribe makes Track call changed for a pair whose answer has changed, or whose profile
// was created, deleted or began to be deleted, or got or lost the mark. changed must return
// at once.
func (r *Rule) Subscribe(changed func(pair types.NamespacedName)) {
	r.changes.changed.Subscribe(changed)
}

// AllowReferences records whether PlacementDecisions may refer to a pair's profile: Yes once it
// exists, with everything that consumers need, and No from before it is deleted. While that is
// Unknown, as for every pair after a start, references stay and none is added. A profile that
// has vanished, or was replaced, is Unknown. Without subscribers nothing is recorded.
func (r *Rule) AllowReferences(pair types.NamespacedName, answer rule.Answer) {
	r.changes.allow(pair, answer)
}

// Referable returns what AllowReferences recorded.
func (r *Rule) Referable(pair types.NamespacedName) rule.Answer {
	state, _ := r.changes.pairs.Get(pair)
	return state.refer
}

// AnyReferable reports whether PlacementDecisions may refer to any profile at all.
func (r *Rule) AnyReferable() bool { return r.changes.referable.Load() > 0 }

// SubscribeReferences makes AllowReferences call changed for a pair of which it records
// something new. changed must return at once.
func (r *Rule) SubscribeReferences(changed func(pair types.NamespacedName)) {
	r.changes.references.Subscribe(changed)
}

// SubscribeEarly makes the routes call touched for every pair that an event concerns,
// before the pair is reconciled, and often without any change for it. So withdrawals need
// not wait for the pair's turn. touched must return at once.
func (r *Rule) SubscribeEarly(touched func(pair types.NamespacedName)) {
	r.changes.early.Subscribe(touched)
}

// Selected applies the rule to a pair as the caches are. withdrawing says that a No would
// take something away: then the answer is Unknown while Settle would delay or doubt the
// withdrawal. While the hub does not serve ClusterProfiles, the answer is never Yes; a No
// does not depend on them.
func (r *Rule) Selected(ctx context.Context, pair types.NamespacedName, withdrawing bool) (rule.Result, error) {
	if !r.prepared.Load() {
		return notReady, nil
	}
	o, result, err := r.Observe(ctx, pair)
	if err == nil && result.Answer != rule.Yes {
		// Callers that read this must learn of the decision, even if it is the one that was tracked
		// last. An event between the observation and this may have told them nothing, so observe again.
		undecided := len(result.Undecided) > 0
		r.settling.await(pair, result.Undecided...)
		if r.changes.doubt(pair, undecided) || undecided {
			o, result, err = r.Observe(ctx, pair)
		}
	}
	if err != nil {
		return rule.Result{}, err
	}
	if withdrawing {
		var wait time.Duration
		if o, result, wait, err = r.settleAbsence(ctx, pair, o, result, longestMoveOfCopies); wait > 0 || err != nil {
			result.Answer, result.Again = rule.Unknown, wait
			return result, err
		}
	}
	if result, err = r.settleWidening(ctx, pair, o, result); err != nil {
		return result, err
	}
	switch {
	case !o.ProfileAPI && result.Answer != rule.No:
		return rule.Result{
			Why: "cannot be selected: the hub does not serve " + rule.ProfileCRD, Untrusted: true, Again: result.Again,
		}, nil
	case !withdrawing, result.Answer == rule.Yes:
		return result, nil
	case result.Answer == rule.Unknown:
		result.Again = kube.Sooner(result.Again, r.definitions.Left(CRDs()...))
		return result, nil
	}
	if result, err = r.confirm(ctx, pair, o, result); result.Answer != rule.No {
		// A pair without a profile may cause no event.
		result.Again = kube.Sooner(result.Again, watch.RestoreTime)
	}
	return result, err
}

// ErrProfilesUnserved means that it is not known which ClusterProfiles exist, since the hub
// does not serve them.
var ErrProfilesUnserved = errors.New("the hub does not serve " + rule.ProfileCRD)

// Namespaces returns the namespaces that have a ClusterProfile with a cluster's name,
// including other clients' profiles, or ErrProfilesUnserved.
func (r *Rule) Namespaces(ctx context.Context, cluster string) ([]string, error) {
	standing, err := r.definitions.Standing(ctx, r.cache, rule.ProfileCRD)
	if err != nil {
		return nil, err
	}
	if standing == watch.Unserved {
		return nil, ErrProfilesUnserved
	}
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	named := client.MatchingFields{routes.IndexProfileByName: cluster}
	if err := r.cache.List(ctx, profiles, named, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("finding the ClusterProfiles of cluster %s: %w", cluster, err)
	}
	namespaces := make([]string, 0, len(profiles.Items))
	for i := range profiles.Items {
		namespaces = append(namespaces, profiles.Items[i].Namespace)
	}
	return namespaces, nil
}
