package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
)

func TestOutcomesAnnounceChanges(t *testing.T) {
	queue := func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(q.ShutDown)
		return q
	}
	o := NewOutcomes()
	o.Trigger.Delay = 0
	namespaces := queue()
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	var clusters []string
	o.StatusChanged = func(cluster string) { clusters = append(clusters, cluster) }
	o.Set(pair, Outcome{Kind: Foreign}) // before the controller of events starts: kept for it
	if err := o.Trigger.Start(t.Context(), namespaces); err != nil {
		t.Fatal(err)
	}
	told := func() []string {
		names := clusters
		clusters = nil
		for namespaces.Len() > 0 {
			req, _ := namespaces.Get()
			names = append(names, req.Namespace)
			namespaces.Done(req)
		}
		return names
	}
	if diff := cmp.Diff([]string{"c", "ns"}, told()); diff != "" {
		t.Errorf("at the start: told (-want +got):\n%s", diff)
	}
	steps := []struct {
		what string
		do   func()
		want []string
	}{
		{"the same again: no word", func() { o.Set(pair, Outcome{Kind: Foreign}) }, nil},
		{"another outcome", func() { o.Set(pair, Outcome{Kind: InPlace, Properties: []string{"p"}}) }, []string{"c", "ns"}},
		{"an equal outcome: no word", func() { o.Set(pair, Outcome{Kind: InPlace, Properties: []string{"p"}}) }, nil},
		{"forgotten", func() { o.Forget(pair) }, []string{"c", "ns"}},
		{"forgotten already: no word", func() { o.Forget(pair) }, nil},
	}
	for _, step := range steps {
		step.do()
		if diff := cmp.Diff(step.want, told()); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", step.what, diff)
		}
	}
	if len(o.clusters)+len(o.namespaces)+len(o.pairs) != 0 {
		t.Error("what is forgotten must leave no memory")
	}
}

// BenchmarkCounting measures the cost of one outcome.
func BenchmarkCounting(b *testing.B) {
	o := NewOutcomes()
	o.Metrics = metrics.New(metrics.Options{})
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	for i := range b.N {
		o.Set(pair, Outcome{Kind: Kind(i % 2)})
	}
}
