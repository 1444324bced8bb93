package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestOutcomesAnnounceChanges(t *testing.T) {
	queue := func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(q.ShutDown)
		return q
	}
	o := newOutcomes()
	o.reportTrigger.Delay = 0
	namespaces := queue()
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	var clusters []string
	o.statusChanged = func(cluster string) { clusters = append(clusters, cluster) }
	o.set(pair, outcome{kind: foreign}) // before the controller of events starts: kept for it
	if err := o.reportTrigger.Start(t.Context(), namespaces); err != nil {
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
		{"the same again: no word", func() { o.set(pair, outcome{kind: foreign}) }, nil},
		{"another outcome", func() { o.set(pair, outcome{kind: inPlace, properties: []string{"p"}}) }, []string{"c", "ns"}},
		{"an equal outcome: no word", func() { o.set(pair, outcome{kind: inPlace, properties: []string{"p"}}) }, nil},
		{"forgotten", func() { o.forget(pair) }, []string{"c", "ns"}},
		{"forgotten already: no word", func() { o.forget(pair) }, nil},
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
