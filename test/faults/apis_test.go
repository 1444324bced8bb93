package faults

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func TestPlansOfAPIsAreOfWhatTheStateNeeds(t *testing.T) {
	tests := map[string]struct {
		state  map[string]string
		counts map[string]int
		want   []string
	}{
		"nothing": {state: map[string]string{profiles + " team-a/" + foreign: "", secrets + " c1/reader": ""}},
		"profiles": {state: map[string]string{profiles + " team-a/c1": ""}, want: []string{
			"edit unserved clusterprofiles.multicluster.x-k8s.io",
			"edit recreated clusterprofiles.multicluster.x-k8s.io",
			"edit recreated-10s clusterprofiles.multicluster.x-k8s.io",
		}},
		"another client's property": {
			state: map[string]string{profiles + " team-a/c1": sharedProfileOf("c1", "1", "1")},
			want:  []string{"edit unserved clusterprofiles.multicluster.x-k8s.io"},
		},
		"the story takes a profile and makes another one": {
			state:  map[string]string{profiles + " team-a/c1": ""},
			counts: map[string]int{"created " + profiles + " team-a/c1": 1, "deleted " + profiles + " team-a/c1": 1},
			want:   []string{"edit unserved clusterprofiles.multicluster.x-k8s.io"},
		},
		"access": {state: map[string]string{profiles + " team-a/c1": `{"status":{"accessProviders":[]}}`}, want: []string{
			"edit unserved clusterprofiles.multicluster.x-k8s.io",
			"edit recreated clusterprofiles.multicluster.x-k8s.io",
			"edit recreated-10s clusterprofiles.multicluster.x-k8s.io",
			"edit unserved managedproxyconfigurations.proxy.open-cluster-management.io",
			"edit recreated managedproxyconfigurations.proxy.open-cluster-management.io",
			"edit recreated-10s managedproxyconfigurations.proxy.open-cluster-management.io",
		}},
		"references and copies": {
			state: map[string]string{references + " team-a/view-0": "", secrets + " team-a/c1-reader": ""},
			want: []string{
				"edit unserved placementdecisions.multicluster.x-k8s.io",
				"edit unserved managedserviceaccounts.authentication.open-cluster-management.io",
				"edit recreated managedserviceaccounts.authentication.open-cluster-management.io",
				"edit recreated-10s managedserviceaccounts.authentication.open-cluster-management.io",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range plansOf(story{name: "edit"}, reference{after: test.state, counts: test.counts}, apis...) {
				parsed, err := parsePlan(stories, p.String())
				if err != nil || parsed != p {
					t.Errorf("%s is read as %s, %v", p, parsed, err)
				}
				if slices.Contains(ofAPIs, p.fault.Kind) && !isOCMs(p.fault.Key.Resource) {
					got = append(got, p.String())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func isOCMs(crd string) bool {
	return slices.ContainsFunc(apis, func(of api) bool { return of.ocms && of.crd == crd })
}

// Their own components would take away what depends on a kind whose CRD is gone.
func TestOnlyStoriesWithoutComponentsHavePlansOfTheirAPIs(t *testing.T) {
	plain := map[string]string{profiles + " team-a/c1": ""}
	placed := map[string]string{references + " team-a/view-0": ""}
	for name, test := range map[string]struct {
		of    story
		state map[string]string
		want  int // kinds
	}{
		"without a Placement": {of: story{name: "edit"}, state: plain, want: 5},
		"with a Placement":    {of: story{name: "place"}, state: placed, want: 7},
		"with components":     {of: install(), state: plain},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			for _, p := range plansOf(test.of, reference{after: test.state}, apis...) {
				if isOCMs(p.fault.Key.Resource) {
					got++
				}
			}
			if want := test.want * len(ofAPIs); got != want {
				t.Errorf("%d plans, want %d", got, want)
			}
		})
	}
}

// passes is a transport that answers everything.
type passes struct{}

func (passes) RoundTrip(*http.Request) (*http.Response, error) { return &http.Response{}, nil }

func TestOnlyRequestsForTheKindWait(t *testing.T) {
	const group = "/apis/multicluster.x-k8s.io/v1alpha1"
	g := &gate{}
	open := g.close(profiles)
	errWaits := errors.New("it waits")
	get := func(path string) error {
		t.Helper()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errWaits)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://hub"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := g.through(passes{}).RoundTrip(request)
		if err == nil && response.Body != nil {
			_ = response.Body.Close()
		}
		return err
	}
	tests := map[string]bool{
		group + "/clusterprofiles":                                            true,
		group + "/namespaces/team-a/clusterprofiles/c1/status":                true,
		group + "/namespaces/team-a/placementdecisions/view":                  false,
		"/apis/example.com/v1/clusterprofiles":                                false,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + profiles: false,
		"/api/v1/namespaces/team-a/secrets/c1-reader":                         false,
		"/api": false,
		"/apis/cluster.open-cluster-management.io/v1beta1/namespaces/n/placementdecisions": false,
	}
	for path, waits := range tests {
		if err := get(path); errors.Is(err, errWaits) != waits {
			t.Errorf("%s: %v", path, err)
		}
	}
	open()
	for path := range tests {
		if err := get(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// objectSeen is an object in a team's namespace, as a watch shows it.
func objectSeen(name, uid, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetNamespace(teamA)
	u.SetName(name)
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)
	return u
}

func TestWatcherHasWhatThereIs(t *testing.T) {
	object := func(name, uid, version string) unstructured.Unstructured { return *objectSeen(name, uid, version) }
	elsewhere := object("c1", "5", "5")
	elsewhere.SetNamespace("elsewhere")
	w := &watcher{namespaces: namespaces, objects: map[string]*unstructured.Unstructured{}}
	for _, name := range []string{"c1", "c2"} {
		seen := object(name, name, "1")
		w.saw(created, profiles, &seen)
	}
	other := object("view", "view", "1")
	w.saw(created, references, &other)
	tests := map[string]struct {
		exist []unstructured.Unstructured
		want  bool
	}{
		"the same":        {exist: []unstructured.Unstructured{object("c1", "c1", "1"), object("c2", "c2", "1"), elsewhere}, want: true},
		"one has changed": {exist: []unstructured.Unstructured{object("c1", "c1", "2"), object("c2", "c2", "1")}},
		"one is another":  {exist: []unstructured.Unstructured{object("c1", "c3", "1"), object("c2", "c2", "1")}},
		"one is gone":     {exist: []unstructured.Unstructured{object("c1", "c1", "1")}},
		"one is new": {exist: []unstructured.Unstructured{
			object("c1", "c1", "1"), object("c2", "c2", "1"), object("c3", "c3", "1"),
		}},
	}
	for name, test := range tests {
		if got := w.has(profiles, test.exist); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAMissedDeletionIsNotOlderThanWhatWasSeenBefore(t *testing.T) {
	w := &watcher{namespaces: namespaces, objects: map[string]*unstructured.Unstructured{}}
	w.saw(created, profiles, objectSeen("c1", "c1", "1"))
	w.saw(created, secrets, objectSeen("c1-reader", "copy", "2"))
	w.saw(deleted, profiles, cache.DeletedFinalStateUnknown{Obj: objectSeen("c1", "c1", "1")})
	changes := w.seen(0)
	if last := changes[len(changes)-1]; last.what != deleted || last.version != 2 {
		t.Errorf("%s at %d", last, last.version)
	}
}

// The next run on the same hub begins with what the one before has left, of which no order is known.
func TestARecordThatBeginsAnewHasAllThatExists(t *testing.T) {
	w := &watcher{namespaces: namespaces, objects: map[string]*unstructured.Unstructured{}}
	slice := objectSeen("view-0", "slice", "2")
	slice.Object["decisions"] = []any{map[string]any{"clusterProfileRef": map[string]any{"name": "c1"}}}
	w.saw(created, profiles, objectSeen("c2", "c2", "1"))
	w.saw(created, references, slice)
	w.saw(deleted, profiles, objectSeen("c2", "c2", "3"))
	w.saw(created, profiles, objectSeen("c1", "c1", "4")) // after what refers to it
	w.restart()
	got := result{setup: w.seen(0)}
	w.saw(deleted, references, objectSeen("view-0", "slice", "5"))
	got.changes = w.seen(len(got.setup))
	if len(got.setup) != 2 || len(got.changes) != 1 {
		t.Errorf("setup %v, changes %v", got.setup, got.changes)
	}
	keeps := story{before: pairs(teamA, "c1"), after: pairs(teamA, "c1")}
	want := []string{"nothing refers any more to the profile team-a/c1, which is chosen all along: " +
		"deleted placementdecisions.multicluster.x-k8s.io team-a/view-0"}
	if diff := cmp.Diff(want, checkOrder(keeps, got)); diff != "" {
		t.Error(diff)
	}
}

// A profile that is deleted and created again has another identity, so its copies get another owner.
func TestAStateIsReachedWhenTheOwnersOfCopiesExist(t *testing.T) {
	copyOf := func(owner, version string) *unstructured.Unstructured {
		u := objectSeen("c1-reader", "copy", version)
		u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ClusterProfile", Name: "c1", UID: types.UID(owner)}})
		return u
	}
	w := &watcher{namespaces: namespaces, objects: map[string]*unstructured.Unstructured{}}
	expect := func(when string, want bool) {
		t.Helper()
		if got := w.ownersExist(); got != want {
			t.Errorf("%s: %t", when, got)
		}
	}
	expect("without a copy", true)
	w.saw(created, profiles, objectSeen("c1", "old", "1"))
	w.saw(created, secrets, copyOf("old", "2"))
	expect("with a copy", true)
	w.saw(deleted, profiles, objectSeen("c1", "old", "3"))
	expect("the profile is gone", false)
	w.saw(created, profiles, objectSeen("c1", "new", "4"))
	expect("it is another one", false)
	w.saw(changed, secrets, copyOf("new", "5"))
	expect("the copy has its owner", true)
	held := copyOf("old", "6")
	now := metav1.Now()
	held.SetDeletionTimestamp(&now)
	w.saw(changed, secrets, held)
	expect("the copy is held by a finalizer", true)
}
