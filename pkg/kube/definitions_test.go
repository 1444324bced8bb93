package kube

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crdReader reads CRDs from memory.
type crdReader struct {
	client.Reader
	crds  map[string]*metav1.PartialObjectMetadata
	fails error
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

type informerAt string

func (i *informerAt) LastSyncResourceVersion() string { return string(*i) }

// crdScene is a kind "a", and its CRD as the cache and the API server know it.
type crdScene struct {
	*Definitions
	t           *testing.T
	time        *testingclock.FakePassiveClock
	cache, live *crdReader
	informer    informerAt
}

func newCRDScene(t *testing.T) *crdScene {
	s := &crdScene{
		t: t, time: testingclock.NewFakePassiveClock(time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)),
		cache: &crdReader{crds: map[string]*metav1.PartialObjectMetadata{}},
		live:  &crdReader{crds: map[string]*metav1.PartialObjectMetadata{}}, informer: "10",
	}
	s.Definitions = NewDefinitions(s.live, s.time)
	return s
}

func (s *crdScene) crd(name, uid, version string, age time.Duration) *metav1.PartialObjectMetadata {
	crd := Partial(CRDKind)
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

func (s *crdScene) follow(fresh bool, sources ...Source) {
	s.t.Helper()
	if len(sources) == 0 {
		sources = []Source{{CRD: "a", Informer: &s.informer}}
	}
	if err := s.Follow(s.t.Context(), s.cache, fresh, sources...); err != nil {
		s.t.Fatal(err)
	}
}

// old begins with a CRD "u1" that has been there for long.
func (s *crdScene) old() {
	s.t.Helper()
	s.both("u1", "5")
	s.cache.crds["a"].CreationTimestamp = metav1.NewTime(s.time.Now().Add(-time.Hour))
	s.follow(false)
	s.stands(Served)
}

func (s *crdScene) stands(want Standing) {
	s.t.Helper()
	if got, err := s.Standing(s.t.Context(), s.cache, "a"); err != nil || got != want {
		s.t.Errorf("standing = %d, %v, want %d", got, err, want)
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

func (s *crdScene) later(by time.Duration) { s.time.SetTime(s.time.Now().Add(by)) }

func TestACRDThatIsCreatedAnew(t *testing.T) {
	s := newCRDScene(t)
	s.old()
	s.refreshes(0, false)
	s.confirms("")

	going := s.crd("a", "u1", "11", time.Hour)
	going.DeletionTimestamp = &metav1.Time{Time: s.time.Now()}
	s.live.crds["a"] = going
	s.stands(Served) // the cache is behind
	s.confirms("a")
	s.cache.crds["a"] = going
	s.stands(Unserved)
	s.refreshes(0, true)
	s.both("", "")
	s.stands(Unserved)
	s.confirms("a")
	s.refreshes(0, false)

	s.both("u2", "20")
	s.stands(Unserved) // as long as the informer may not have listed under it
	s.confirms("a")
	s.refreshes(time.Second, false)
	s.informer = "19" // from a watch that the old CRD's end has not closed yet
	s.both("u2", "21")
	s.refreshes(time.Second, false)
	s.informer = "20"
	s.refreshes(time.Minute, true)
	s.stands(Restoring)
	s.confirms("a")
	if left := s.Left("a"); left != time.Minute {
		t.Errorf("left = %s", left)
	}
	s.later(59 * time.Second)
	s.refreshes(time.Second, false)
	s.stands(Restoring)
	s.later(time.Second)
	s.stands(Served)
	s.refreshes(0, true)
	s.refreshes(0, false)
	s.confirms("")
}

func TestACRDThatIsCreatedAnewWithinTheMinute(t *testing.T) {
	s := newCRDScene(t)
	s.old()
	s.informer = "100"
	s.both("u2", "20") // nobody saw the first go
	s.stands(Unserved)
	s.refreshes(time.Minute, true)
	s.later(30 * time.Second)
	s.both("u3", "101")
	s.stands(Unserved)
	s.refreshes(time.Second, true)
	s.informer = "102"
	s.refreshes(time.Minute, true)
	s.later(30 * time.Second)
	s.stands(Restoring)
}

func TestTheWorkOfThisProcessIsNotAwaited(t *testing.T) {
	s := newCRDScene(t)
	s.both("u1", "5")
	s.follow(false, Source{CRD: "a", Informer: &s.informer, OwnWork: true})
	s.stands(Served)
	s.both("u2", "20")
	s.stands(Unserved)
	s.refreshes(time.Second, true)
	s.informer = "20"
	s.refreshes(0, true)
	s.stands(Served)
}

func TestTheFirstSightOfACRD(t *testing.T) {
	for name, test := range map[string]struct {
		age, otherAge time.Duration
		fresh         bool
		want          Standing
		left          time.Duration
	}{
		"old":                                   {age: time.Hour, otherAge: time.Hour, want: Served},
		"a minute old":                          {age: time.Minute, otherAge: time.Hour, want: Served},
		"new, and so are the others":            {age: 20 * time.Second, otherAge: 30 * time.Second, want: Young, left: 40 * time.Second},
		"on a new hub":                          {age: 20 * time.Second, otherAge: 30 * time.Second, fresh: true, want: Served},
		"new, while others are old":             {age: 20 * time.Second, otherAge: time.Hour, want: Restoring, left: 40 * time.Second},
		"new on a hub that has nothing to lose": {age: 20 * time.Second, otherAge: time.Hour, fresh: true, want: Restoring, left: 40 * time.Second},
		"by a clock that is behind":             {age: -time.Hour, otherAge: -time.Hour, want: Young, left: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCRDScene(t)
			s.cache.crds["a"], s.cache.crds["b"] = s.crd("a", "u", "5", test.age), s.crd("b", "v", "6", test.otherAge)
			s.follow(test.fresh, Source{CRD: "a", Informer: &s.informer}, Source{CRD: "b", Informer: &s.informer})
			s.stands(test.want)
			s.refreshes(test.left, false)
			s.later(time.Minute)
			s.stands(Served)
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
		s.stands(Unserved)
		s.both("u1", "20")
		s.informer = "20"
		s.refreshes(time.Minute, true)
		s.stands(Restoring)
	})
	t.Run("not followed", func(t *testing.T) {
		s := newCRDScene(t)
		s.stands(Unserved)
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

// TestLiveReadsAreShared: whoever asks while a read runs gets what the next one
// finds, together with all others who do.
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
				return Partial(CRDKind), nil
			})
			if found == nil {
				t.Error("got what was found before asking")
			}
		})
	}
	for asked := 0; asked != others+1; {
		r.mu.Lock()
		asked = r.asked
		r.mu.Unlock()
	}
	close(go1)
	group.Wait()
	if got := reads.Load(); got != 2 {
		t.Errorf("%d reads, want 2", got)
	}
}
