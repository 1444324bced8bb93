package watch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// crdReader reads CRDs from memory.
type crdReader struct {
	client.Reader
	crds  map[string]*metav1.PartialObjectMetadata
	fails error

	version string // of the API server
}

func (r *crdReader) Get(_ context.Context, key types.NamespacedName, obj client.Object, _ ...client.GetOption) error {
	if r.fails != nil {
		return r.fails
	}
	crd, ok := r.crds[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	crd.DeepCopyInto(obj.(*metav1.PartialObjectMetadata))
	return nil
}

// List is that of the one page with which the resource version is read.
func (r *crdReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion(r.version)
	return r.fails
}

// fakeInformer holds objects that a test adds.
type fakeInformer struct {
	version  string
	objects  []client.Object
	handlers []toolscache.ResourceEventHandler
}

// LastSyncResourceVersion counts what is still on its way to the objects.
func (i *fakeInformer) LastSyncResourceVersion() string { return "999999" }

func (i *fakeInformer) GetStore() toolscache.Store { return apitest.StoreAt(i.version) }

func (i *fakeInformer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	for _, object := range i.objects {
		handler.OnAdd(object, true)
	}
	i.handlers = append(i.handlers, handler)
	return registered{}, nil
}

// add adds an object, as by a watch.
func (i *fakeInformer) add() {
	for _, handler := range i.handlers {
		handler.OnAdd(kube.Partial(kube.NamespaceKind), false)
	}
}

// change changes and deletes an object.
func (i *fakeInformer) change() {
	for _, handler := range i.handlers {
		handler.OnUpdate(kube.Partial(kube.NamespaceKind), kube.Partial(kube.NamespaceKind))
		handler.OnDelete(kube.Partial(kube.NamespaceKind))
	}
}

type registered struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registered) HasSynced() bool { return true }

// crdScene is a kind "a", and its CRD as the cache and the API server know it.
type crdScene struct {
	*Definitions
	t           *testing.T
	time        *testingclock.FakePassiveClock
	cache, live *crdReader
	informer    fakeInformer
}

func newCRDScene(t *testing.T) *crdScene {
	s := &crdScene{
		t: t, time: testingclock.NewFakePassiveClock(time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)),
		cache: &crdReader{crds: map[string]*metav1.PartialObjectMetadata{}},
		live:  &crdReader{crds: map[string]*metav1.PartialObjectMetadata{}}, informer: fakeInformer{version: "10"},
	}
	s.Definitions = NewDefinitions(s.live, s.time)
	return s
}

func (s *crdScene) crd(name, uid, version string, age time.Duration) *metav1.PartialObjectMetadata {
	crd := kube.Partial(kube.CRDKind)
	crd.Name, crd.UID, crd.ResourceVersion = name, types.UID(uid), version
	crd.CreationTimestamp = metav1.NewTime(s.time.Now().Add(-age))
	return crd
}

// cached sets what the cache knows of the CRD a; with an empty UID, that it is gone.
func (s *crdScene) cached(uid, version string) {
	if delete(s.cache.crds, "a"); uid != "" {
		s.cache.crds["a"] = s.crd("a", uid, version, 0)
	}
}

// both sets what cache and API server know of it.
func (s *crdScene) both(uid, version string) {
	s.cached(uid, version)
	if delete(s.live.crds, "a"); uid != "" {
		s.live.crds["a"] = s.crd("a", uid, version, 0)
	}
}

func (s *crdScene) follow(restored bool, sources ...Source) {
	s.t.Helper()
	if len(sources) == 0 {
		sources = []Source{{CRD: "a", Informer: &s.informer}}
	}
	if err := s.Follow(s.t.Context(), s.cache, restored, sources...); err != nil {
		s.t.Fatal(err)
	}
}

// old begins with a CRD "u1" that has existed for long.
func (s *crdScene) old() {
	s.t.Helper()
	s.both("u1", "5")
	s.cache.crds["a"].CreationTimestamp = metav1.NewTime(s.time.Now().Add(-time.Hour))
	s.follow(false)
	s.hasState(Served)
}

func (s *crdScene) hasState(want State) {
	s.t.Helper()
	if got, err := s.State(s.t.Context(), s.cache, "a"); err != nil || got != want {
		s.t.Errorf("state = %d, %v, want %d", got, err, want)
	}
}

func (s *crdScene) refreshes(again time.Duration, announce bool) {
	s.t.Helper()
	gotAgain, gotAnnounce, err := s.Refresh(s.t.Context(), s.cache, "a")
	if err != nil || gotAgain != again || gotAnnounce != announce {
		s.t.Errorf("refresh = %s, %t, %v; want %s, %t", gotAgain, gotAnnounce, err, again, announce)
	}
}

func (s *crdScene) confirms(want string) {
	s.t.Helper()
	if got, err := s.Confirm(s.t.Context(), "a"); err != nil || got != want {
		s.t.Errorf("confirm = %q, %v, want %q", got, err, want)
	}
}

// other begins to follow a kind "b", too.
func (s *crdScene) other() *fakeInformer {
	s.t.Helper()
	other := &fakeInformer{version: "1"}
	s.cache.crds["b"] = s.crd("b", "v1", "6", time.Hour)
	s.follow(false, Source{CRD: "b", Informer: other})
	return other
}

func (s *crdScene) later(by time.Duration) { s.time.SetTime(s.time.Now().Add(by)) }

func TestRecreatedCRD(t *testing.T) {
	s := newCRDScene(t)
	s.old()
	s.refreshes(0, false)
	s.confirms("")

	going := s.crd("a", "u1", "11", time.Hour)
	going.DeletionTimestamp = &metav1.Time{Time: s.time.Now()}
	s.live.crds["a"] = going
	s.hasState(Served) // the cache is behind
	s.confirms("a")
	s.cache.crds["a"] = going
	s.hasState(Unserved)
	s.refreshes(RestoreTime/2, true)
	s.both("", "")
	s.hasState(Unserved)
	s.confirms("a")
	s.refreshes(RestoreTime/2, false)

	s.both("u2", "20")
	s.hasState(Unserved) // as long as the informer may not have listed under it
	s.confirms("a")
	s.refreshes(time.Second, false)
	s.informer.version = "19" // from a watch that the old CRD's end has not closed yet
	s.both("u2", "21")
	s.refreshes(time.Second, false)
	s.informer.version = "20"
	s.refreshes(time.Minute, true)
	s.hasState(Restoring)
	s.confirms("a")
	if left := s.Left("a"); left != time.Minute {
		t.Errorf("left = %s", left)
	}
	s.later(59 * time.Second)
	s.refreshes(time.Second, false)
	s.hasState(Restoring)
	s.later(time.Second)
	s.hasState(Served)
	s.refreshes(0, true)
	s.refreshes(0, false)
	s.confirms("")
}

func TestCRDRecreatedWithinTheMinute(t *testing.T) {
	s := newCRDScene(t)
	s.old()
	s.informer.version = "100"
	s.both("u2", "20") // the first deletion was not seen
	s.hasState(Unserved)
	s.refreshes(time.Minute, true)
	s.later(30 * time.Second)
	s.both("u3", "101")
	s.hasState(Unserved)
	s.refreshes(time.Second, true)
	s.informer.version = "102"
	s.refreshes(time.Minute, true)
	s.later(30 * time.Second)
	s.hasState(Restoring)
}

// Until the controller looks, the kind counts as unserved, and what depends on it does nothing. So it is
// announced though the cache was faster.
func TestTheWorkOfThisProcessIsNotAwaited(t *testing.T) {
	for _, isSlow := range []bool{true, false} {
		s := newCRDScene(t)
		s.both("u1", "5")
		s.follow(true, Source{CRD: "a", Informer: &s.informer, OwnWork: true})
		s.hasState(Served)
		s.both("u2", "20")
		s.hasState(Unserved)
		if isSlow {
			s.refreshes(time.Second, true)
		}
		s.informer.version = "20"
		s.refreshes(0, true)
		s.hasState(Served)
	}
}

// recreated begins with a CRD that was recreated just now.
func (s *crdScene) recreated() {
	s.t.Helper()
	s.old()
	s.both("u2", "20")
	s.informer.version = "20"
	s.refreshes(time.Minute, true)
	s.hasState(Restoring)
}

// TestASlowRestoreIsWaitedFor restores ten thousand objects in bursts, of a kind that was
// not recreated at first and then of the one that was.
func TestASlowRestoreIsWaitedFor(t *testing.T) {
	s := newCRDScene(t)
	s.recreated()
	other := &fakeInformer{}
	s.cache.crds["b"] = s.crd("b", "v", "6", time.Hour)
	s.follow(false, Source{CRD: "b", Informer: other})
	for burst := range 10 {
		s.later(59 * time.Second)
		s.refreshes(time.Second, false)
		s.confirms("a")
		restored := other
		if burst > 5 {
			restored = &s.informer
		}
		for range 1000 {
			restored.add()
		}
		s.refreshes(time.Minute, false)
	}
	s.later(59 * time.Second)
	s.informer.change() // which restores nothing
	s.hasState(Restoring)
	s.later(time.Second)
	s.refreshes(0, true)
	s.confirms("")
	s.informer.add()
	s.hasState(Served) // permanently
}

// TestFleetThatAlwaysGrows delays removals by half an hour.
func TestFleetThatAlwaysGrows(t *testing.T) {
	s := newCRDScene(t)
	s.recreated()
	for waited := 30 * time.Second; waited < 30*time.Minute; waited += 30 * time.Second {
		s.later(30 * time.Second)
		s.informer.add()
		s.refreshes(min(time.Minute, 30*time.Minute-waited), false)
	}
	s.later(30*time.Second - 1)
	s.informer.add()
	s.refreshes(1, false)
	s.later(1)
	s.refreshes(0, true)
	s.hasState(Served)
	s.informer.add()
	s.hasState(Served)
}

// TestKindsFollowedLaterAreRestoredTogether: kinds that are followed later are restored together with the first.
func TestKindsFollowedLaterAreRestoredTogether(t *testing.T) {
	s := newCRDScene(t)
	s.recreated()
	other := s.other()
	s.later(40 * time.Second)
	other.add()
	s.refreshes(time.Minute, false)
	s.later(40 * time.Second)
	s.cache.crds["b"] = s.crd("b", "v2", "30", 0)
	other.version = "30"
	if _, _, err := s.Refresh(t.Context(), s.cache, "b"); err != nil {
		t.Fatal(err)
	}
	s.refreshes(time.Minute, false) // another CRD was recreated
}

// TestARestoreWaitsForCRDsThatAreMissing: objects that depend on a kind cannot be restored
// before the kind's own CRD.
func TestARestoreWaitsForCRDsThatAreMissing(t *testing.T) {
	s := newCRDScene(t)
	s.recreated()
	other := s.other()
	refreshOther := func(want time.Duration) {
		t.Helper()
		if again, _, err := s.Refresh(t.Context(), s.cache, "b"); err != nil || again != want {
			t.Errorf("refresh of b = %s, %v, want %s", again, err, want)
		}
	}
	delete(s.cache.crds, "b")
	for range 8 {
		refreshOther(RestoreTime / 2)
		s.refreshes(time.Minute, false)
		s.later(RestoreTime / 2)
	}
	s.hasState(Restoring)
	s.cache.crds["b"] = s.crd("b", "v2", "30", 0)
	other.version = "30"
	refreshOther(time.Minute)
	s.later(time.Minute - 1)
	s.hasState(Restoring)
	s.later(1)
	s.hasState(Served)
}

func TestTerminatingObjectsAreConfirmedDuringARestore(t *testing.T) {
	s := newCRDScene(t)
	s.recreated()
	confirms := func(want string) {
		t.Helper()
		if got, err := s.ConfirmPresent(t.Context(), "a"); err != nil || got != want {
			t.Errorf("confirm = %q, %v, want %q", got, err, want)
		}
	}
	s.confirms("a")
	confirms("")
	s.live.crds["a"].DeletionTimestamp = &metav1.Time{Time: s.time.Now()}
	confirms("a")
}

func TestTheClockIsSetBackDuringARestore(t *testing.T) {
	s := newCRDScene(t)
	s.recreated()
	s.later(30 * time.Second)
	s.informer.add()
	s.later(-time.Hour)
	s.refreshes(time.Minute, false)
	s.later(time.Minute)
	s.hasState(Served)
}

func TestTheFirstSightOfACRD(t *testing.T) {
	const none = 24 * time.Hour
	for name, test := range map[string]struct {
		age, otherAge time.Duration
		newest        time.Duration // the age of the newest object; zero if there is none
		restored      bool
		want          State
		left          time.Duration
	}{
		"old": {age: time.Hour, otherAge: time.Hour,
			newest: time.Second, restored: true, want: Served},
		"on a new hub": {age: 20 * time.Second,
			otherAge: 30 * time.Second, newest: time.Second, want: Served},
		"recreated": {age: 20 * time.Second, otherAge: 30 * time.Second,
			restored: true, want: Restoring, left: 40 * time.Second},
		"recreated, nothing added since": {age: time.Minute, otherAge: time.Minute, restored: true, want: Served},
		"being restored for minutes": {age: 9 * time.Minute, otherAge: 9 * time.Minute, newest: 10 * time.Second,
			restored: true, want: Restoring, left: 50 * time.Second},
		"restored for minutes, and done": {age: 9 * time.Minute, otherAge: 9 * time.Minute,
			newest: time.Minute, restored: true, want: Served},
		"at the end of the longest wait": {age: 30*time.Minute - 5,
			otherAge: time.Hour, newest: time.Second, want: Restoring, left: 5},
		"new, while others are old": {age: 20 * time.Second,
			otherAge: time.Hour, want: Restoring, left: 40 * time.Second},
		"by a clock that is behind": {age: -time.Hour, otherAge: -time.Hour,
			newest: -time.Hour, restored: true, want: Restoring, left: time.Minute},
		"new, while the others are our work": {age: 20 * time.Second, otherAge: none, want: Served},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCRDScene(t)
			s.cache.crds["a"], s.cache.crds["b"] = s.crd("a", "u", "5", test.age), s.crd("b", "v", "6", test.otherAge)
			if test.newest != 0 {
				object := kube.Partial(kube.NamespaceKind)
				object.CreationTimestamp = metav1.NewTime(s.time.Now().Add(-test.newest))
				s.informer.objects = append(s.informer.objects, object)
			}
			s.follow(test.restored, Source{CRD: "a", Informer: &s.informer},
				Source{CRD: "b", Informer: &fakeInformer{}, OwnWork: test.otherAge == none})
			s.hasState(test.want)
			s.refreshes(test.left, false)
			s.later(time.Minute)
			s.hasState(Served)
			s.refreshes(0, test.want != Served)
		})
	}
	t.Run("an informer that does not tell how far it has come", func(t *testing.T) {
		s := newCRDScene(t)
		if err := s.Follow(t.Context(), s.cache, false, Source{CRD: "a", Informer: "none"}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("not there", func(t *testing.T) {
		s := newCRDScene(t)
		s.follow(false)
		s.hasState(Unserved)
		s.both("u1", "20")
		s.informer.version = "20"
		s.refreshes(time.Minute, true)
		s.hasState(Restoring)
	})
	t.Run("not followed", func(t *testing.T) {
		s := newCRDScene(t)
		s.hasState(Unserved)
		s.confirms("a")
		s.refreshes(0, false)
	})
}

func TestConfirmFails(t *testing.T) {
	s := newCRDScene(t)
	s.old()
	s.live.fails = errors.New("not now")
	if _, err := s.Confirm(t.Context(), "a"); !errors.Is(err, s.live.fails) {
		t.Errorf("error = %v, want that of the read", err)
	}
}

// TestLiveReadsAreShared: callers that ask while a read runs get the result of the next
// one, together with all others that do.
func TestLiveReadsAreShared(t *testing.T) {
	var r liveRead
	var reads atomic.Int32
	began, go1 := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = r.read(func() (*metav1.PartialObjectMetadata, error) {
			reads.Add(1)
			close(began)
			<-go1
			return nil, nil
		})
	})
	<-began
	const others = 8
	for range others {
		group.Go(func() {
			found, _ := r.read(func() (*metav1.PartialObjectMetadata, error) {
				reads.Add(1)
				return kube.Partial(kube.CRDKind), nil
			})
			if found == nil {
				t.Error("got what was found before asking")
			}
		})
	}
	for r.asked.Load() != others+1 {
		runtime.Gosched()
	}
	close(go1)
	group.Wait()
	if got := reads.Load(); got != 2 {
		t.Errorf("%d reads, want 2", got)
	}
}

// The store of a client-go informer knows the resource version that it has reached by a list, an event or a bookmark.
func TestAnInformersStoreReportsItsProgress(t *testing.T) {
	events := apiwatch.NewFake()
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			return &corev1.NamespaceList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			if ptr.Deref(options.SendInitialEvents, false) {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // so that it lists
			}
			return events, nil
		},
	}, &corev1.Namespace{}, 0, nil)
	go informer.RunWithContext(t.Context())
	reaches := func(version string) {
		t.Helper()
		d := &definition{Source: Source{Informer: informer}}
		apitest.Eventually(t, apitest.Patience, "version "+version, func() string {
			if d.hasReached(version) {
				return ""
			}
			return informer.GetStore().LastStoreSyncResourceVersion()
		})
	}
	reaches("5")
	events.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: "6"}})
	reaches("6")
	events.Action(apiwatch.Bookmark, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}})
	reaches("7")
}

// A cache that was filled by an API server that lags is distinguished from one that is up to
// date, and once it has caught up, that stays so.
func TestLagging(t *testing.T) {
	s := newCRDScene(t)
	s.live.version = "11"
	s.old()
	s.follow(false)
	lags := func(when string, want bool) {
		t.Helper()
		if got := s.Lagging().Any("b", "a"); got != want {
			t.Errorf("%s: lags is %t, want %t", when, got, want)
		}
	}
	lags("the API server has come further, and its events are not in the cache yet", true)
	s.informer.version = "11"
	lags("the cache has come as far", false)
	s.informer.version = "1"
	lags("the hub was restored", false)
	if s.Lagging().Any("unknown") {
		t.Error("a kind that is not followed lags")
	}

	s = newCRDScene(t)
	s.live.fails = errors.New("no answer")
	s.cached("u1", "5")
	if err := s.Follow(t.Context(), s.cache, false, Source{CRD: "a", Informer: &s.informer}); err == nil {
		t.Error("follows although the API server does not say how far it has come")
	}
}
