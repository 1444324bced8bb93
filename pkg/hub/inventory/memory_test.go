package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
