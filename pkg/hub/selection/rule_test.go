package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// scene is a rule over a hub on which the cluster c is selected in the namespace
// ns.
type scene struct {
	*Rule
	t     *testing.T
	cache fakeCache
	live  fakeCache // past the cache
	time  *testingclock.FakePassiveClock
	pair  types.NamespacedName
}

func newRule(cache Cache, live client.Reader, clock clock.PassiveClock) *Rule {
	return New(cache, live, watch.NewDefinitions(live, clock), clock)
}

func newScene(t *testing.T, objs ...client.Object) *scene {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	cluster := ocmtest.ClusterWith("c", ocmtest.InSet("s"))
	cluster.Spec.HubAcceptsClient = true
	objs = append(objs, namespace, cluster, ocmtest.Addon("c"), ocmtest.ExclusiveSet("s"), ocmtest.Binding("ns", "s"))
	s := &scene{
		t: t, cache: newFakeCache(objs...), pair: types.NamespacedName{Namespace: "ns", Name: "c"},
		time: testingclock.NewFakePassiveClock(time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)),
	}
	s.live = fakeCache{Client: s.cache.Client, missingCRD: new(string), anewCRD: new(string)}
	s.Rule = newRule(s.cache, s.live, s.time)
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.settling.start(time.Time{}, nil, nil) // long ago
	return s
}

// selected compares what the rule says.
func (s *scene) selected(want rule.Result) {
	s.t.Helper()
	got, err := s.Selected(s.t.Context(), s.pair, true)
	if err != nil {
		s.t.Fatal(err)
	}
	ignored := cmpopts.IgnoreFields(rule.Result{}, "Bindings", "Member", "Undecided", "ByPlacement", "Rests")
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		s.t.Errorf("selected (-want +got):\n%s", diff)
	}
}

// settles compares how long to wait before acting on what is observed now.
func (s *scene) settles(withdrawing bool, want time.Duration) {
	s.t.Helper()
	o, result, err := s.Observe(s.t.Context(), s.pair)
	if err != nil {
		s.t.Fatal(err)
	}
	_, got, err := s.Settle(s.t.Context(), s.pair, o, result, withdrawing)
	if err != nil || got != want {
		s.t.Errorf("settle = %s, %v, want %s", got, err, want)
	}
}

// unbind deletes the only binding.
func (s *scene) unbind() {
	s.t.Helper()
	if err := s.cache.Delete(s.t.Context(), ocmtest.Binding("ns", "s")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) later(d time.Duration) { s.time.SetTime(s.time.Now().Add(d)) }

func (s *scene) update(obj client.Object) {
	s.t.Helper()
	if err := s.cache.Status().Update(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
}

// A set is unbound and bound again before the pair is reconciled, but not before a copy was withdrawn.
func TestWhoReadThatAClusterIsNotSelectedLearnsThatItIsAgain(t *testing.T) {
	s := newScene(t)
	notified := 0
	s.Subscribe(func(types.NamespacedName) { notified++ })
	s.Track(s.pair, rule.Yes, nil)
	s.selected(rule.Result{Answer: rule.Yes})
	notified = 0
	s.Track(s.pair, rule.Yes, nil)
	if notified != 0 {
		t.Error("notified of nothing")
	}
	s.unbind()
	if got, err := s.Selected(t.Context(), s.pair, false); err != nil || got.Answer != rule.No {
		t.Fatalf("selected: %+v, %v", got, err)
	}
	apitest.Must(t, s.cache.Create(t.Context(), ocmtest.Binding("ns", "s")))
	s.Track(s.pair, rule.Yes, nil)
	if notified != 1 {
		t.Errorf("notified %d times", notified)
	}
}

func TestSelected(t *testing.T) {
	t.Run("selected", func(t *testing.T) { newScene(t).selected(rule.Result{Answer: rule.Yes}) })

	t.Run("before the rule is prepared", func(t *testing.T) {
		s := newScene(t)
		s.Rule = newRule(s.cache, s.cache, s.time)
		// No caller need ask again: subscribers are notified.
		s.selected(rule.Result{Why: "has not been evaluated yet", Untrusted: true, NotReady: true})
		notified := 0
		s.SubscribeDefinitions(func(context.Context) { notified++ })
		if err := s.Prepare(t.Context()); err != nil || notified != 1 {
			t.Errorf("prepare = %v, notified %d times, want once", err, notified)
		}
		s.selected(rule.Result{Answer: rule.Yes})
	})

	for _, crd := range CRDs() {
		t.Run("without "+crd, func(t *testing.T) {
			s := newScene(t)
			*s.cache.missingCRD = crd
			why := "the hub does not serve " + crd
			if crd == "clusterprofiles.multicluster.x-k8s.io" {
				why = "cannot be selected: " + why
			}
			s.selected(rule.Result{Why: why, Untrusted: true})
		})
	}

	const profiles = "clusterprofiles.multicluster.x-k8s.io"
	unserved := rule.Result{Why: "cannot be selected: the hub does not serve " + profiles, Untrusted: true}
	t.Run("a No does not need profiles", func(t *testing.T) {
		const unbound = "is in no ManagedClusterSet that is bound and published here"
		s := newScene(t)
		*s.cache.missingCRD = profiles
		s.unbind()
		s.selected(rule.Result{Answer: rule.No, Why: unbound})
		*s.live.anewCRD = rule.BindingCRD
		s.selected(rule.Result{Why: whyDoubtful(rule.BindingCRD), Untrusted: true, Again: time.Minute})
	})
	t.Run("without profiles, an unreadable set is no reason to trust anything", func(t *testing.T) {
		s := newScene(t)
		if err := s.cache.Delete(t.Context(), ocmtest.ExclusiveSet("s")); err != nil {
			t.Fatal(err)
		}
		s.selected(rule.Result{Why: `cannot be selected: ManagedClusterSet "s" does not exist`})
		*s.cache.missingCRD = profiles
		s.selected(unserved)
	})
	t.Run("without profiles, an absence from decisions must last as well", func(t *testing.T) {
		const why = "is not chosen by a Placement labeled inventory.open-cluster-management.io/publish=true"
		p, decision := ocmtest.Publishing("p", 1), ocmtest.Slice("p-1", "p", "another")
		s := newScene(t, p, decision)
		*s.cache.missingCRD = profiles
		s.selected(rule.Result{Why: why, Again: time.Second})
		s.later(time.Second)
		s.selected(rule.Result{Answer: rule.No, Why: why})
		decision.Status.Decisions[0].ClusterName = "c"
		s.update(decision)
		s.selected(unserved)
	})

	const why = "is not chosen by a Placement labeled inventory.open-cluster-management.io/publish=true"
	t.Run("an absence from decisions must last", func(t *testing.T) {
		s := newScene(t, ocmtest.Publishing("p", 0))
		s.selected(rule.Result{Why: why, Again: time.Second})
		s.later(700 * time.Millisecond)
		s.selected(rule.Result{Why: why, Again: 300 * time.Millisecond})
		s.later(300 * time.Millisecond)
		s.selected(rule.Result{Answer: rule.No, Why: why})
	})
	t.Run("an absence that takes nothing away counts at once, and is not remembered", func(t *testing.T) {
		s := newScene(t, ocmtest.Publishing("p", 0))
		got, err := s.Selected(t.Context(), s.pair, false)
		if err != nil || got.Answer != rule.No || got.Again != 0 {
			t.Errorf("selected: %+v, %v; want a No at once", got, err)
		}
		if s.settling.absent.Len() != 0 {
			t.Errorf("remembered: %v", s.settling.absent.Keys())
		}
	})
}

// failingCache fails to add its second index once.
type failingCache struct {
	fakeCache
	added []string
	fail  bool
}

func (c *failingCache) IndexField(_ context.Context, _ client.Object, name string, _ client.IndexerFunc) error {
	if len(c.added) == 1 && !c.fail {
		c.fail = true
		return errors.New("not now")
	}
	c.added = append(c.added, name)
	return nil
}

func TestPrepareResumesWhereItFailed(t *testing.T) {
	c := &failingCache{fakeCache: newFakeCache()}
	r := newRule(c, c, testingclock.NewFakePassiveClock(time.Now()))
	if err := r.Prepare(t.Context()); err == nil || r.Ready() {
		t.Fatalf("prepare = %v, ready is %t; want an error", err, r.Ready())
	}
	if err := r.Prepare(t.Context()); err != nil || !r.Ready() {
		t.Fatalf("prepare = %v, ready is %t", err, r.Ready())
	}
	want := make([]string, 0, len(routes.Indexes))
	for _, index := range routes.Indexes {
		want = append(want, index.Name)
	}
	if diff := cmp.Diff(want, c.added); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
}

// startingCache records which informers are first requested by a caller that waits.
type startingCache struct {
	fakeCache
	begun   map[string]bool
	awaited []string
}

func (c *startingCache) GetInformer(
	ctx context.Context, obj client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	options := cache.InformerGetOptions{}
	for _, set := range opts {
		set(&options)
	}
	kind := fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind().Kind)
	if waits := options.BlockUntilSynced == nil || *options.BlockUntilSynced; waits && !c.begun[kind] {
		c.awaited = append(c.awaited, kind)
	}
	c.begun[kind] = true
	return c.fakeCache.GetInformer(ctx, obj, opts...)
}

// TestPrepareFillsTheCacheInParallel: a manager that starts, or takes over, does not wait for
// one kind after the other.
func TestPrepareFillsTheCacheInParallel(t *testing.T) {
	c := &startingCache{fakeCache: newFakeCache(), begun: map[string]bool{}}
	if err := newRule(c, c, testingclock.NewFakePassiveClock(time.Now())).Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.begun) < len(sources) || len(c.awaited) > 0 {
		t.Errorf("of %d kinds, %q were begun only when they were awaited", len(c.begun), c.awaited)
	}
}

func TestSettle(t *testing.T) {
	others := []string{"another"}
	t.Run("a withdrawal waits until an absence has lasted", func(t *testing.T) {
		s := newScene(t, ocmtest.Publishing("p", len(others)), ocmtest.Slice("p-1", "p", others...))
		s.settles(true, time.Second)
		s.settles(false, 0)
		s.later(time.Second)
		s.settles(true, 0)
	})
	t.Run("an absence is prolonged until the slices have been the same for as long", func(t *testing.T) {
		p, churning := ocmtest.Publishing("p", 1), ocmtest.Slice("p-1", "p", others...)
		s := newScene(t, p, churning)
		s.settles(true, time.Second)
		s.later(600 * time.Millisecond)
		// OCM writes the slice before the Placement's status.
		churning.Status.Decisions = append(churning.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: "d"})
		s.update(churning)
		s.settles(true, time.Second) // incomplete
		p.Status.NumberOfSelectedClusters = 2
		s.update(p)
		s.settles(true, time.Second)
		s.later(time.Second)
		s.settles(true, 0)
	})
	t.Run("a cluster that turns up after seconds of writing was never absent", func(t *testing.T) {
		p, first, last := ocmtest.Publishing("p", 2), ocmtest.Slice("p-1", "p", "a"), ocmtest.Slice("p-2", "p", "b")
		s := newScene(t, p, first, last)
		s.settles(true, time.Second)
		for i := range 10 {
			s.later(300 * time.Millisecond)
			first.Status.Decisions[0].ClusterName = fmt.Sprint("a", i)
			s.update(first)
			s.settles(true, time.Second)
			if got, err := s.Selected(t.Context(), s.pair, true); err != nil || got.Answer != rule.Unknown {
				t.Errorf("selected: %+v, %v; want Unknown", got, err)
			}
		}
		last.Status.Decisions[0].ClusterName = "c"
		s.update(last)
		s.settlesAs(rule.Yes)
	})
	t.Run("slices that are written all the time keep nothing for longer than ten seconds", func(t *testing.T) {
		churning := ocmtest.Slice("p-1", "p", others...)
		s := newScene(t, ocmtest.Publishing("p", 1), churning)
		s.settles(true, time.Second)
		for after := 500 * time.Millisecond; after < 10*time.Second; after += 500 * time.Millisecond {
			s.later(500 * time.Millisecond)
			churning.Status.Decisions[0].ClusterName = after.String()
			s.update(churning)
			s.settles(true, min(time.Second, 10*time.Second-after))
		}
		s.later(500 * time.Millisecond)
		churning.Status.Decisions[0].ClusterName = "another"
		s.update(churning)
		s.settlesAs(rule.No)
	})
	t.Run("slices count as the cache holds them, though the routes lag behind", func(t *testing.T) {
		p, left := ocmtest.Publishing("p", 2), ocmtest.Slice("p-1", "p", "another", "c")
		s := newScene(t, p, left)
		s.settlesAs(rule.Yes)
		s.settlesAs(rule.Yes) // with what is remembered
		left.Status.Decisions = left.Status.Decisions[:1]
		s.update(left) // in the cache, which no route has reported
		s.settles(true, time.Second)
		s.later(time.Second)
		if got, err := s.Selected(t.Context(), s.pair, true); err != nil || got.Answer != rule.Unknown {
			t.Errorf("selected: %+v, %v; want Unknown, since the slices do not add up", got, err)
		}
		s.settlesAs(rule.Unknown)
		p.Status.NumberOfSelectedClusters = 1
		s.update(p)
		remembered := s.settling.summaries[client.ObjectKeyFromObject(p)]
		s.settles(true, time.Second) // now it is absent
		s.later(time.Second)
		s.settlesAs(rule.No)
		if now := s.settling.summaries[client.ObjectKeyFromObject(p)]; now == (rule.Summary{}) || now != remembered {
			t.Error("slices that did not change were counted again")
		}
	})
	t.Run("a cluster that returns and leaves again starts a new absence", func(t *testing.T) {
		p, decision := ocmtest.Publishing("p", 1), ocmtest.Slice("p-1", "p", others...)
		s := newScene(t, p, decision)
		s.settles(true, time.Second)
		s.later(600 * time.Millisecond)
		decision.Status.Decisions[0].ClusterName = "c"
		s.update(decision)
		s.settles(false, 0)
		decision.Status.Decisions[0].ClusterName = "another"
		s.update(decision)
		s.settles(true, time.Second)
	})
	t.Run("a return that only the routes saw ends an absence", func(t *testing.T) {
		p := ocmtest.Publishing("p", 1)
		s := newScene(t, p, ocmtest.Slice("p-1", "p", others...))
		s.settles(true, time.Second)
		s.later(600 * time.Millisecond)
		s.Routes(nothing{}).PairsForDecision(t.Context(), ocmtest.Slice("p-1", "p", "c"))
		s.settles(true, time.Second)
	})
	t.Run("the absence of a pair that is gone is forgotten", func(t *testing.T) {
		s := newScene(t, ocmtest.Publishing("p", 1), ocmtest.Slice("p-1", "p", others...))
		s.settles(true, time.Second)
		if err := s.cache.Delete(t.Context(), ocmtest.Addon("c")); err != nil {
			t.Fatal(err)
		}
		s.settles(true, 0)
		if s.settling.absent.Len() != 0 {
			t.Errorf("remembered: %v", s.settling.absent.Keys())
		}
	})
	t.Run("an undecided Placement is waited for, then awaited", func(t *testing.T) {
		p := ocmtest.Publishing("p", 2)
		s := newScene(t, p, ocmtest.Slice("p-1", "p", others...))
		routes := s.Routes(nothing{})
		s.settles(false, time.Second)
		if got := routes.PairsAwaiting(t.Context(), p); len(got) != 0 {
			t.Errorf("the Placement leads to %v though no caller awaits it", got)
		}
		s.later(time.Second)
		s.settles(false, 0)
		p.Status.NumberOfSelectedClusters = 1
		s.update(p)
		if diff := cmp.Diff([]string{"ns/c"}, foundBy(routes.PairsAwaiting(t.Context(), p))); diff != "" {
			t.Errorf("the Placement leads to (-want +got):\n%s", diff)
		}
		s.settles(true, time.Second)
	})
	t.Run("an event between the observation and await is not missed", func(t *testing.T) {
		p := ocmtest.Publishing("p", 2)
		s := newScene(t, p, ocmtest.Slice("p-1", "p", others...))
		s.settles(false, time.Second)
		s.later(time.Second)
		o, result, err := s.Observe(t.Context(), s.pair)
		if err != nil {
			t.Fatal(err)
		}
		p = p.DeepCopy()
		p.Status.NumberOfSelectedClusters = 1
		s.update(p)
		_, left, err := s.Settle(t.Context(), s.pair, o, result, false)
		if err != nil || left != time.Second {
			t.Errorf("settle = %s, %v; want to look again in a second", left, err)
		}
	})
}

// settlesAs compares the result on which a caller would act.
func (s *scene) settlesAs(want rule.Answer) {
	s.t.Helper()
	o, result, err := s.Observe(s.t.Context(), s.pair)
	if err != nil {
		s.t.Fatal(err)
	}
	got, wait, err := s.Settle(s.t.Context(), s.pair, o, result, true)
	if err != nil || wait != 0 || got.Answer != want {
		s.t.Errorf("settle = %+v, %s, %v; want answer %d", got, wait, err, want)
	}
}

func TestCRDIsReadBeforeItsObjectsCountAsMissing(t *testing.T) {
	const (
		bindings   = "managedclustersetbindings.cluster.open-cluster-management.io"
		placements = "placements.cluster.open-cluster-management.io"
	)
	for name, set := range map[string]func(s *scene, crd string){
		"gone":          func(s *scene, crd string) { *s.live.missingCRD = crd },
		"recreated":     func(s *scene, crd string) { *s.live.anewCRD = crd },
		"both know it":  func(s *scene, crd string) { *s.live.anewCRD, *s.cache.anewCRD = crd, crd },
		"both lack it":  func(s *scene, crd string) { *s.live.missingCRD, *s.cache.missingCRD = crd, crd },
		"cache is late": func(s *scene, crd string) { *s.cache.missingCRD = crd },
	} {
		t.Run("a binding has vanished, its CRD is "+name, func(t *testing.T) {
			s := newScene(t)
			s.unbind()
			s.settlesAs(rule.No)
			set(s, bindings)
			s.settlesAs(rule.Unknown)
			got, err := s.Selected(t.Context(), s.pair, true)
			if err != nil || got.Answer != rule.Unknown {
				t.Errorf("selected: %+v, %v; want Unknown", got, err)
			}
		})
	}
	t.Run("another CRD does not matter", func(t *testing.T) {
		s := newScene(t)
		s.unbind()
		*s.live.anewCRD = placements
		s.settlesAs(rule.No)
	})
	t.Run("the last Placement has vanished", func(t *testing.T) {
		p := ocmtest.Publishing("p", 1)
		s := newScene(t, p, ocmtest.Slice("p-1", "p", "c"))
		s.settlesAs(rule.Yes)
		if err := s.cache.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		s.Routes(nothing{}).PairsForPlacement(t.Context(), p)
		*s.live.missingCRD = placements
		s.settlesAs(rule.Unknown)
		*s.live.missingCRD = ""
		s.settlesAs(rule.Unknown) // it may be about to be recreated
		s.later(10 * time.Second)
		*s.live.missingCRD = placements
		s.settlesAs(rule.Unknown)
		*s.live.missingCRD = ""
		s.settlesAs(rule.Yes)
		*s.live.missingCRD = placements
		s.settlesAs(rule.Yes) // it is known to have been deleted
	})
	t.Run("a minute after the caches have caught up, what is missing counts", func(t *testing.T) {
		s := newScene(t)
		s.unbind()
		*s.live.anewCRD, *s.cache.anewCRD = bindings, bindings
		s.settlesAs(rule.Unknown)
		if _, changed, err := s.definitions.Refresh(t.Context(), s.cache, bindings); err != nil || !changed {
			t.Errorf("refresh: changed is %t, %v", changed, err)
		}
		s.selected(rule.Result{Why: whyDoubtful(bindings), Untrusted: true, Again: time.Minute})
		s.later(time.Minute)
		s.settlesAs(rule.No)
	})
}

// uncachedProfiles is a cache on a hub that has never served ClusterProfiles.
type uncachedProfiles struct {
	fakeCache
	served *bool
}

func (c uncachedProfiles) isUncached(obj any) bool {
	switch obj.(type) {
	case *inventoryv1alpha1.ClusterProfile, *inventoryv1alpha1.ClusterProfileList:
		return !*c.served
	default:
		return false
	}
}

func (c uncachedProfiles) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if c.isUncached(obj) {
		return &cache.ErrResourceNotCached{}
	}
	return c.fakeCache.Get(ctx, key, obj, opts...)
}

func (c uncachedProfiles) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if c.isUncached(list) {
		return &cache.ErrResourceNotCached{}
	}
	return c.fakeCache.List(ctx, list, opts...)
}

func (c uncachedProfiles) IndexField(
	ctx context.Context, obj client.Object, name string, extract client.IndexerFunc,
) error {
	if c.isUncached(obj) {
		return &meta.NoKindMatchError{}
	}
	return c.fakeCache.IndexField(ctx, obj, name, extract)
}

// TestPrepareWithoutProfiles: until the hub serves ClusterProfiles, a No counts, and nothing
// else is known.
func TestPrepareWithoutProfiles(t *testing.T) {
	const unbound = "is in no ManagedClusterSet that is bound and published here"
	s := newScene(t)
	served := false
	cached := uncachedProfiles{fakeCache: s.cache, served: &served}
	s.Rule = newRule(cached, s.live, s.time)
	notified := 0
	s.SubscribeDefinitions(func(context.Context) { notified++ })
	if err := s.Prepare(t.Context()); err == nil {
		t.Fatal("prepared without ClusterProfiles")
	}
	if err := s.PrepareWithoutProfiles(t.Context()); err != nil || s.Ready() || notified != 1 {
		t.Fatalf("prepare = %v, ready is %t, notified %d times", err, s.Ready(), notified)
	}
	s.selected(rule.Result{Why: "cannot be selected: the hub does not serve " + rule.ProfileCRD, Untrusted: true})
	if _, err := s.Namespaces(t.Context(), "c"); !errors.Is(err, ErrProfilesUnserved) {
		t.Errorf("namespaces: %v", err)
	}
	bound := ocmtest.Binding("ns", "s")
	if diff := cmp.Diff([]string{"ns/c"}, foundBy(s.Routes(nothing{}).PairsForBinding(t.Context(), bound))); diff != "" {
		t.Errorf("the binding leads to (-want +got):\n%s", diff)
	}
	s.unbind()
	s.selected(rule.Result{Answer: rule.No, Why: unbound})

	served = true
	if err := s.Prepare(t.Context()); err != nil || !s.Ready() || notified != 2 {
		t.Fatalf("prepare = %v, ready is %t, notified %d times", err, s.Ready(), notified)
	}
	if err := s.cache.Create(t.Context(), ocmtest.Binding("ns", "s")); err != nil {
		t.Fatal(err)
	}
	s.selected(rule.Result{Answer: rule.Yes})
}

func TestNamespaces(t *testing.T) {
	s := newScene(t, ocmtest.ForeignProfile("a", "c"), ocmtest.ForeignProfile("b", "c"), ocmtest.ForeignProfile("a", "d"))
	got, err := s.Namespaces(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

// TestObserveRestored: a profile that was created before its cluster shows that the
// clusters were restored, or are about to be.
func TestObserveRestored(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.Unix(second, 0) }
	for name, test := range map[string]struct {
		profile metav1.Time
		change  func(profile *inventoryv1alpha1.ClusterProfile)
		cluster *metav1.Time // nil: there is none
		want    bool
	}{
		"made for its cluster":    {profile: at(20), cluster: ptr.To(at(10))},
		"made in the same second": {profile: at(20), cluster: ptr.To(at(20))},
		"its cluster is younger":  {profile: at(20), cluster: ptr.To(at(21)), want: true},
		"its cluster is missing":  {profile: at(20), want: true},
		"by another client":       {profile: at(20), change: func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = nil }},
		"by another cluster manager": {profile: at(20),
			change: func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "x" }},
	} {
		t.Run(name, func(t *testing.T) {
			profile := ocmtest.OurProfile("ns", "c")
			profile.CreationTimestamp = test.profile
			if test.change != nil {
				test.change(profile)
			}
			objs := []client.Object{profile}
			if test.cluster != nil {
				cluster := ocmtest.ClusterWith("c", nil)
				cluster.CreationTimestamp = *test.cluster
				objs = append(objs, cluster)
			}
			c := newFakeCache(objs...)
			got, err := newRule(c, c, testingclock.NewFakePassiveClock(time.Now())).observeRestored(t.Context())
			if err != nil || got != test.want {
				t.Errorf("restored is %t, %v; want %t", got, err, test.want)
			}
		})
	}
}

func TestRoutesNotifyEarlySubscribersOfEveryPair(t *testing.T) {
	s := newScene(t, ocmtest.ForeignProfile("ns", "c"))
	var notified []string
	s.SubscribeEarly(func(pair types.NamespacedName) { notified = append(notified, pair.String()) })
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	routes := s.Routes(nothing{})
	unbound := event.DeleteEvent{Object: ocmtest.Binding("ns", "s")}
	routes.Route(routes.PairsForBinding).Delete(t.Context(), unbound, queue)
	if diff := cmp.Diff([]string{"ns/c"}, notified); diff != "" || queue.Len() != 1 {
		t.Errorf("notified of (-want +got):\n%s%d queued", diff, queue.Len())
	}
}

// A subscriber that asked while a Placement was undecided is notified of its decision, also if
// it is the same as the one before: no other caller may have seen the Placement undecided.
func TestReadersOfAnUndecidedPlacementAreNotifiedOfItsDecision(t *testing.T) {
	p := ocmtest.Publishing("p", 1)
	s := newScene(t, p, ocmtest.Slice("p-1", "p", "c"))
	var notified []types.NamespacedName
	s.Subscribe(func(pair types.NamespacedName) { notified = append(notified, pair) })
	routes := s.Routes(nothing{})
	track := func() {
		t.Helper()
		o, result, err := s.Observe(t.Context(), s.pair)
		if err != nil {
			t.Fatal(err)
		}
		s.Track(s.pair, result.Answer, o.Profile)
	}
	track()
	notified = nil
	decision := ocmtest.Slice("p-1", "p", "another")
	s.update(decision) // OCM is writing: the Placement's status will follow
	p.Status.NumberOfSelectedClusters = 2
	s.update(p)
	s.copies(rule.Unknown)
	decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: "c"})
	s.update(decision)
	if diff := cmp.Diff([]string{"ns/c"}, foundBy(routes.PairsAwaiting(t.Context(), p))); diff != "" {
		t.Errorf("the Placement leads to (-want +got):\n%s", diff)
	}
	track()
	if diff := cmp.Diff([]types.NamespacedName{s.pair}, notified); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
	notified = nil
	track()
	if len(notified) > 0 {
		t.Errorf("notified again: %v", notified)
	}
}

func TestCRDs(t *testing.T) {
	for name, want := range map[string]bool{
		"clusterprofiles.multicluster.x-k8s.io":                 true,
		"managedclusteraddons.addon.open-cluster-management.io": true,
		"placementdecisions.cluster.open-cluster-management.io": true,
		"placementdecisions.multicluster.x-k8s.io":              false,
		"others.example.com":                                    false,
	} {
		crd := kube.Partial(kube.CRDKind)
		crd.Name = name
		if got := kube.Named(CRDs()...).Create(event.CreateEvent{Object: crd}); got != want {
			t.Errorf("%s passes is %t, want %t", name, got, want)
		}
	}
}
