package selection

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

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

// Cache is the part of the manager's cache that the rule needs. The package says what it must
// hold.
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

// New returns a rule that answers Unknown until it is prepared. live bypasses every cache.
func New(cache Cache, live client.Reader, definitions *watch.Definitions, clock clock.PassiveClock) *Rule {
	rule := &Rule{
		cache: cache, clock: clock, definitions: definitions,
		settling: newSettling(), changes: &changeTracker{},
		live: newLiveReads(live, clock), granting: newLiveReads(live, clock),
	}
	definitions.Subscribe(rule.changes.definitions.Notify, CRDs()...)
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
	addOn, err := r.cache.GetInformer(ctx, &addonv1beta1.ClusterManagementAddOn{})
	if err != nil {
		return fmt.Errorf("caching ClusterManagementAddOns: %w", err)
	}
	if !r.followsInstall {
		if _, err := addOn.AddEventHandler(kube.OnEvent(r.onInstallStrategy)); err != nil {
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
	r.changes.definitions.Notify(ctx)
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

// Routes returns the routes for a controller that remembers some pairs.
func (r *Rule) Routes(remembered routes.Remembered) routes.Routes {
	return routes.Routes{
		Reader: r.cache, Settling: r.settling, IsInstall: r.isInstall, Remembered: remembered,
		Touched: r.changes.early.Notify, InstallChanged: r.changes.install.Notify,
	}
}

// ErrProfilesUnserved means that it is not known which ClusterProfiles exist, since the hub
// does not serve them.
var ErrProfilesUnserved = errors.New("the hub does not serve " + rule.ProfileCRD)

// Namespaces returns the namespaces that have a ClusterProfile with a cluster's name,
// including other clients' profiles, or ErrProfilesUnserved.
func (r *Rule) Namespaces(ctx context.Context, cluster string) ([]string, error) {
	state, err := r.definitions.State(ctx, r.cache, rule.ProfileCRD)
	if err != nil {
		return nil, err
	}
	if state == watch.Unserved {
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
