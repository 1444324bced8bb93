package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestExpectations(t *testing.T) {
	start := time.Unix(100, 0)
	key := types.NamespacedName{Namespace: "ns", Name: "c"}
	at := func(uid, version string) *inventoryv1alpha1.ClusterProfile {
		return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: types.UID(uid), ResourceVersion: version}}
	}
	going := at("u", "12")
	going.DeletionTimestamp = &metav1.Time{Time: start}
	wrote := func(e *expectations) { e.wrote(at("u", "10"), start) }
	deleted := func(e *expectations) { e.deleted(at("u", "10"), start) }

	tests := map[string]struct {
		did    func(*expectations)
		cached client.Object
		after  time.Duration
		want   time.Duration
	}{
		"nothing written: no wait":                           {did: func(*expectations) {}, cached: at("u", "1")},
		"written, the cache is behind: wait":                 {did: wrote, cached: at("u", "9"), after: time.Second, want: 4 * time.Second},
		"written, the cache has it":                          {did: wrote, cached: at("u", "10")},
		"written, the cache is ahead":                        {did: wrote, cached: at("u", "11")},
		"created, the cache has none yet: wait":              {did: wrote, want: 5 * time.Second},
		"created, and the cache never has it: not for ever":  {did: wrote, after: 5 * time.Second},
		"versions that cannot be compared: no wait":          {did: wrote, cached: at("u", "x")},
		"deleted, the cache still has it: wait":              {did: deleted, cached: at("u", "10"), want: 5 * time.Second},
		"deleted, the cache has none":                        {did: deleted},
		"deleted, the cache has another of the name":         {did: deleted, cached: at("v", "13")},
		"deleted, but somebody's finalizer holds it":         {did: deleted, cached: going},
		"deleted, and the cache never sees it: not for ever": {did: deleted, cached: at("u", "10"), after: time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newExpectations()
			test.did(e)
			if got := e.wait(key, test.cached, start.Add(test.after)); got != test.want {
				t.Errorf("wait = %s, want %s", got, test.want)
			}
			if test.want == 0 && len(e.pending) != 0 {
				t.Error("a met expectation must not be kept")
			}
		})
	}
}

func TestSettling(t *testing.T) {
	start := time.Unix(100, 0)
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	s := newSettling()
	see := func(after time.Duration, placements ...observedPlacement) time.Duration {
		return s.see(placements, start.Add(after))
	}
	p := chooser("p", false, 3)
	check := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: left = %s, want %s", what, got, want)
		}
	}
	check("first seen", see(0, p), time.Second)
	check("the same, soon after", see(400*time.Millisecond, p), 600*time.Millisecond)
	p.newest = "6"
	check("a slice was written", see(900*time.Millisecond, p), time.Second)
	check("the same, a second after", see(1900*time.Millisecond, p), 0)
	q := chooser("q", false, 1)
	check("with another that is new", see(2*time.Second, p, q), time.Second)
	p.placement.Status.NumberOfSelectedClusters++
	check("the status was written", see(4*time.Second, p), time.Second)
	check("no Placements", see(4*time.Second), 0)

	if s.takeAwaited(key) {
		t.Error("nobody waits yet")
	}
	s.await(key)
	p.slices++
	see(5*time.Second, p)
	if !s.takeAwaited(key) {
		t.Error("who waits is remembered when the Placement changes")
	}
	if s.takeAwaited(key) {
		t.Error("who waited was told")
	}
	s.await(key)
	s.forget(key)
	if s.takeAwaited(key) {
		t.Error("nobody waits for a Placement that is gone")
	}
}

func TestOutcomesTellWhatChanged(t *testing.T) {
	queue := func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(q.ShutDown)
		return q
	}
	o := newOutcomes()
	o.namespaces.delay = 0
	clusters, namespaces := queue(), queue()
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	o.set(pair, outcome{result: foreign}) // before anybody listens: not an error
	if err := o.clusters.Start(t.Context(), clusters); err != nil {
		t.Fatal(err)
	}
	if err := o.namespaces.Start(t.Context(), namespaces); err != nil {
		t.Fatal(err)
	}
	told := func() []string {
		var names []string
		for _, q := range []workqueue.TypedRateLimitingInterface[reconcile.Request]{clusters, namespaces} {
			for q.Len() > 0 {
				req, _ := q.Get()
				names = append(names, req.Name)
				q.Done(req)
			}
		}
		return names
	}
	steps := []struct {
		what string
		do   func()
		want []string
	}{
		{"the same again: no word", func() { o.set(pair, outcome{result: foreign}) }, nil},
		{"another outcome", func() { o.set(pair, outcome{result: inPlace, properties: []string{"p"}}) }, []string{"c", "ns"}},
		{"an equal outcome: no word", func() { o.set(pair, outcome{result: inPlace, properties: []string{"p"}}) }, nil},
		{"forgotten", func() { o.forget(pair) }, []string{"c", "ns"}},
		{"forgotten already: no word", func() { o.forget(pair) }, nil},
	}
	for _, step := range steps {
		step.do()
		if diff := cmp.Diff(step.want, told()); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", step.what, diff)
		}
	}
	if len(o.byCluster)+len(o.byNamespace)+len(o.pairs) != 0 {
		t.Error("what is forgotten must leave no memory")
	}
}
