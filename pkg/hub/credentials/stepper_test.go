package credentials

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// stepper runs the production reconcilers with their caches, but no controllers: the test
// calls Reconcile. It acts as administrator, so that it need not wait for new RoleBindings.
type stepper struct {
	*world
	copies, grants reconcile.Reconciler
	time           *apitest.Clock
}

func newStepper(t *testing.T, change ...func(*Options)) *stepper {
	t.Helper()
	s := &stepper{world: newWorld(t), time: &apitest.Clock{}}
	s.opts.Clock, s.opts.operationWait = s.time, time.Hour // a step ends when all is done
	for _, each := range change {
		each(&s.opts)
	}
	mgr := ocmtest.NewManager(t, s.wire.Tap(s.srv.Config(t)), nil)
	ctx, cancel := context.WithCancel(t.Context())
	syncer, err := upstream.AddSyncer(mgr, upstream.OverrideOff, clock.RealClock{}, func(bool, bool) {})
	apitest.Must(t, err)
	s.opts.UpstreamSyncer = syncer
	s.opts.Definitions = watch.NewDefinitions(mgr.GetAPIReader(), s.time)
	s.opts.Events, err = notices.Add(mgr, s.time)
	apitest.Must(t, err)
	creds, err := Add(ctx, mgr, s.opts)
	if err != nil {
		t.Fatal(err)
	}
	_, err = mgr.GetCache().GetInformer(ctx, &inventoryv1alpha1.ClusterProfile{}, cache.BlockUntilSynced(false))
	apitest.Must(t, err)
	caches := append(slices.Collect(maps.Values(creds.bindings)), mgr.GetCache())
	cached := make(chan error, len(caches))
	for _, one := range caches {
		go func() { cached <- one.Start(ctx) }()
		if !one.WaitForCacheSync(ctx) {
			t.Fatal("a cache was not filled")
		}
	}
	s.creds, s.mgr = creds, mgr
	led := s.lead(ctx)
	s.stop = func() {
		cancel()
		<-led
		for range caches {
			if err := <-cached; err != nil {
				t.Errorf("cache: %v", err)
			}
		}
		s.stop = func() {}
	}
	return s
}

// lead starts what the elected leader runs, and makes the reconcilers.
func (s *stepper) lead(ctx context.Context) (ended <-chan struct{}) {
	s.T.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.creds.stopFollowers(ctx); err != nil {
			s.T.Errorf("leader: %v", err)
		}
	}()
	apitest.Must(s.T, s.creds.start(ctx))
	s.Eventually("upstream's syncer is known", func() string {
		if s.opts.UpstreamSyncer.Unknown() != "" {
			return "upstream's syncer is not known"
		}
		return ""
	})
	s.copies, s.grants = &Reconciler{Credentials: s.creds}, s.creds.grants
	return done
}

// cachedAccount is the resource version of an account in the accounts' cache.
func (s *stepper) cachedAccount(key types.NamespacedName) string {
	account, _, err := s.creds.accounts.Get(s.T.Context(), key)
	if err != nil || account == nil {
		return ""
	}
	return account.ResourceVersion
}

// cachedCopy is the resource version of a copy as its namespace's follower shows
// it; known is false while the namespace is not followed.
func (s *stepper) cachedCopy(key types.NamespacedName) (version string, known bool) {
	if !s.creds.followers.Synced(key.Namespace) {
		return "", false
	}
	return s.seenVersion(key), true
}

// still is one cluster, published to one team, whose account reader should be copied there.
type still struct {
	*stepper
	cluster, team string
	profile       *inventoryv1alpha1.ClusterProfile
	account       *authv1beta1.ManagedServiceAccount
	token         string
}

func (s *stepper) still(name string) *still {
	s.T.Helper()
	v := &still{stepper: s, cluster: s.cluster(name), team: s.team()}
	v.profile = s.publish(v.team, v.cluster)
	v.account = s.Account(v.cluster, "reader", v.team)
	v.token = s.Rotate(v.account)
	v.caughtUp()
	return v
}

func (v *still) accountKey() types.NamespacedName { return client.ObjectKeyFromObject(v.account) }

func (v *still) copyKey() types.NamespacedName {
	return types.NamespacedName{Namespace: v.team, Name: v.cluster + "-reader"}
}

// step reconciles the account once.
func (v *still) step() (reconcile.Result, error) {
	v.T.Helper()
	return v.copies.Reconcile(v.T.Context(), reconcile.Request{NamespacedName: v.accountKey()})
}

// round reconciles everything that concerns the account once.
func (v *still) round() error {
	v.T.Helper()
	_, err := v.step()
	for _, at := range []types.NamespacedName{{Namespace: v.team, Name: targetRole},
		{Namespace: v.cluster, Name: sourceRole}} {
		if _, failed := v.grants.Reconcile(v.T.Context(), reconcile.Request{NamespacedName: at}); err == nil {
			err = failed
		}
	}
	return err
}

// converge does rounds until one writes nothing, has no failure and leaves the desired
// state. It returns the writes on the way.
func (v *still) converge(done func() string) []string {
	v.T.Helper()
	var all []string
	v.Eventually("everything converges", func() string {
		before := len(v.wire.Writes())
		err := v.round()
		all = slices.Sorted(slices.Values(v.wire.Sent()))
		v.caughtUp()
		switch {
		case err != nil:
			return err.Error()
		case len(v.wire.Writes()) > before:
			return fmt.Sprintf("still writing: %v", all)
		default:
			return done()
		}
	})
	return all
}

// quietNow checks that one more round writes nothing.
func (v *still) quietNow() {
	v.T.Helper()
	v.wire.Reset()
	if err := v.round(); err != nil {
		v.T.Errorf("one more round: %v", err)
	}
	if diff := cmp.Diff([]string{}, v.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
		v.T.Errorf("one more round writes (-want +got):\n%s", diff)
	}
}

// caughtUp waits until the caches have what the API server has.
func (v *still) caughtUp() {
	v.T.Helper()
	live := func(key types.NamespacedName, obj client.Object) string {
		if err := v.Get(v.T.Context(), key, obj); err != nil {
			if !apierrors.IsNotFound(err) {
				v.T.Fatal(err)
			}
			return ""
		}
		return obj.GetResourceVersion()
	}
	behind := func(what string, cached, live string) string {
		if cached != live {
			return fmt.Sprintf("the cache has %s at version %q, not %q", what, cached, live)
		}
		return ""
	}
	inCache := func(cached client.Reader, key types.NamespacedName, obj client.Object) string {
		if err := cached.Get(v.T.Context(), key, obj); err != nil {
			return ""
		}
		return obj.GetResourceVersion()
	}
	v.Eventually("the caches catch up", func() string {
		account := &authv1beta1.ManagedServiceAccount{}
		version := live(v.accountKey(), account)
		if account.Labels[syncLabel] != "true" {
			version = ""
		}
		if missing := behind("the account", v.cachedAccount(v.accountKey()), version); missing != "" {
			return missing
		}
		for _, at := range []types.NamespacedName{{Namespace: v.team, Name: targetRole},
			{Namespace: v.cluster, Name: sourceRole}} {
			version := live(at, &rbacv1.RoleBinding{})
			cached := inCache(v.creds.bindings, at, &rbacv1.RoleBinding{})
			if missing := behind("RoleBinding "+at.String(), cached, version); missing != "" {
				return missing
			}
		}
		profile := types.NamespacedName{Namespace: v.team, Name: v.cluster}
		cached := inCache(v.mgr.GetCache(), profile, &inventoryv1alpha1.ClusterProfile{})
		if missing := behind("the profile", cached,
			live(profile, &inventoryv1alpha1.ClusterProfile{})); missing != "" {
			return missing
		}
		secret := &corev1.Secret{}
		version = live(v.copyKey(), secret)
		if secret.Labels["inventory.open-cluster-management.io/credential"] != "true" ||
			secret.Annotations["inventory.open-cluster-management.io/source-account"] != "reader" {
			version = ""
		}
		if cached, watched := v.cachedCopy(v.copyKey()); watched {
			return behind("the copy", cached, version)
		}
		return ""
	})
}

// watched waits until the copies of the team's namespace are watched.
func (v *still) watched() {
	v.T.Helper()
	v.followed(v.team)
	v.caughtUp()
}

// there says what is wrong with the copy, if anything.
func (v *still) there() string {
	got := v.copied(v.team, v.cluster, "reader")
	switch {
	case got == nil:
		return "there is no copy"
	case string(got.Data["token"]) != v.token || string(got.Data["ca.crt"]) != ocmtest.CA() || len(got.Data) != 2:
		return "the copy holds something else"
	case got.Labels["inventory.open-cluster-management.io/credential"] != "true" ||
		got.Annotations["inventory.open-cluster-management.io/source-account"] != "reader":
		return "the copy does not say what it is"
	case len(got.OwnerReferences) != 1 || got.OwnerReferences[0].Name != v.cluster:
		return "the copy has another owner"
	case v.condition(v.cluster).Reason != "Copied":
		return fmt.Sprintf("condition %+v", v.condition(v.cluster))
	}
	return ""
}

// gone says what is left of the copy and of the rights to it, if anything.
func (v *still) gone() string {
	if v.copied(v.team, v.cluster, "reader") != nil {
		return "the copy is there"
	}
	for _, at := range []types.NamespacedName{{Namespace: v.team, Name: targetRole},
		{Namespace: v.cluster, Name: sourceRole}} {
		if err := v.Get(v.T.Context(), at, &rbacv1.RoleBinding{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("RoleBinding %s: %v", at, err)
		}
	}
	return ""
}

// later is when a token's validity is over.
func later() time.Time { return time.Now().Add(time.Hour) }
