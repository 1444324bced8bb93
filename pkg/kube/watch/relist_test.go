package watch

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// server is restarted and restored by some tests.
var server = apitest.New()

func TestMain(m *testing.M) { apitest.Main(m, server) }

func TestCachesFollowARestoredServer(t *testing.T) {
	w := server.World(t, scheme.Scheme)
	w.Patience = apitest.RestartPatience
	ns := w.Namespace("test", nil)
	object := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	edit := func(w *apitest.World, name, value string) {
		apitest.Edit(w, object(name), func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"value": value} })
	}
	w.MustCreate(object("edited"), object("deleted"))
	edit(w, "edited", "early")
	data := server.Snapshot(t)

	t.Run("whose version is behind when watches resume", func(t *testing.T) {
		w := w.In(t)
		eventually := followConfigMaps(t, w, ns)
		edit(w, "edited", "lost")
		w.MustDelete(object("deleted"))
		w.MustCreate(object("created"))
		for i := range 500 { // the restored server does not get as far in this test
			edit(w, "edited", fmt.Sprint("lost-", i))
		}
		eventually("what will be lost", map[string]string{"edited": "lost-499", "created": ""})

		server.Restore(t, data, nil)
		eventually("what was restored", map[string]string{"edited": "early", "deleted": ""})
		edit(w, "edited", "late")
		eventually("a later change", map[string]string{"edited": "late", "deleted": ""})
	})
	t.Run("whose version is ahead when watches resume", func(t *testing.T) {
		w := w.In(t)
		eventually := followConfigMaps(t, w, ns)
		w.MustCreate(object("created"))
		eventually("what will be lost", map[string]string{"edited": "late", "deleted": "", "created": ""})

		server.Restore(t, data, nil)
		for i := range 50 {
			edit(w, "edited", fmt.Sprint("new-", i))
		}
		eventually("what was restored", map[string]string{"edited": "new-49", "deleted": ""})
	})
}

// followConfigMaps follows the ConfigMaps of a namespace with a cache and with a Follower. It
// returns a function that waits until both have objects with certain values.
func followConfigMaps(t *testing.T, w *apitest.World, ns string) (eventually func(string, map[string]string)) {
	t.Helper()
	cfg, _ := RelistAfterOutage(server.Config(t), time.Second)
	cached, err := cache.New(cfg, cache.Options{
		Scheme: scheme.Scheme, DefaultNamespaces: map[string]cache.Config{ns: {}},
	})
	apitest.Must(t, err)
	apitest.RunCache(t, cached, &corev1.ConfigMap{})
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme})
	apitest.Must(t, err)
	followed := map[string]string{} // as the calls of Changed say
	changed := make(chan func(), 10000)
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	follower := NewFollower(c, Follow{
		Object: kube.Partial(kind), List: kube.PartialList(kind), Select: []client.ListOption{client.InNamespace(ns)},
		Changed: func(before, after client.Object) {
			changed <- func() {
				if after == nil {
					delete(followed, before.GetName())
				} else {
					followed[after.GetName()] = after.GetLabels()["value"]
				}
			}
		},
	})
	apitest.Run(t, func(ctx context.Context) error {
		follower.Run(ctx)
		return nil
	})
	return func(what string, want map[string]string) {
		t.Helper()
		w.Eventually(what+" in the cache", func() string {
			list := &corev1.ConfigMapList{}
			apitest.Must(t, cached.List(t.Context(), list))
			got := map[string]string{}
			for _, cm := range list.Items {
				got[cm.Name] = cm.Labels["value"]
			}
			return cmp.Diff(want, got)
		})
		w.Eventually(what+" in the follower", func() string {
			for len(changed) > 0 {
				(<-changed)()
			}
			return cmp.Diff(want, followed)
		})
		if names := slices.Sorted(maps.Keys(followed)); len(names) != len(follower.Objects()) {
			t.Errorf("the follower has announced %v, and has %d objects", names, len(follower.Objects()))
		}
	}
}

// A server without WatchList answers 422 to a watch that lists, and the reflector falls back to
// a list and a watch.
func TestOldServersAreListedOnce(t *testing.T) {
	w := server.World(t, scheme.Scheme)
	w.Patience = apitest.RestartPatience
	ns := w.Namespace("test", nil)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "object"}}
	w.MustCreate(object)
	wire := &apitest.Wire{}
	wire.Fail(func(call apitest.Call) apitest.Fault {
		if listsByWatch(call) {
			return apitest.Fault{Status: http.StatusUnprocessableEntity, Reason: "Invalid"}
		}
		return apitest.Fault{}
	})
	cfg, _ := RelistAfterOutage(wire.Tap(server.Config(t)), 0)
	cached, err := cache.New(cfg, cache.Options{
		Scheme: scheme.Scheme, DefaultNamespaces: map[string]cache.Config{ns: {}},
	})
	apitest.Must(t, err)
	apitest.RunCache(t, cached, &corev1.ConfigMap{})
	w.Eventually("the first watch begins", func() string { return watchAfterList(wire) })

	wire.Reset()
	server.Snapshot(t) // restarts it
	w.Eventually("the cache is listed", func() string { return watchAfterList(wire) })
	wire.Reset()
	apitest.Edit(w, object, func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"value": "new"} })
	w.Eventually("a change is seen", func() string {
		seen := &corev1.ConfigMap{}
		apitest.Must(t, cached.Get(t.Context(), client.ObjectKeyFromObject(object), seen))
		return cmp.Diff("new", seen.Labels["value"])
	})
	if calls := wire.Calls(); slices.ContainsFunc(calls, listsByWatch) {
		t.Errorf("it is listed again: %v", apitest.Summarize(calls))
	}
}

func listsByWatch(call apitest.Call) bool { return call.Query.Has("sendInitialEvents") }

// watchAfterList complains unless the last call is a watch that follows a list.
func watchAfterList(wire *apitest.Wire) string {
	calls := wire.Calls()
	n := len(calls)
	if n < 2 || !calls[n-1].IsWatch() || listsByWatch(calls[n-1]) || calls[n-2].IsWatch() {
		return fmt.Sprint(apitest.Summarize(calls))
	}
	return ""
}
