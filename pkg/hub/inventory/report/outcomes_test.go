package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
)

func TestOutcomesAnnounceChanges(t *testing.T) {
	o := NewOutcomes()
	o.Metrics = metrics.New(metrics.Options{})
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	var names []string
	o.StatusChanged = func(cluster string) { names = append(names, cluster) }
	o.ScopeChanged = func(scope types.NamespacedName) { names = append(names, scope.Namespace) }
	reported := func() []string {
		defer func() { names = nil }()
		return names
	}
	steps := []struct {
		what string
		do   func()
		want []string
	}{
		{"the first outcome", func() { o.Set(pair, Outcome{Kind: Foreign}) }, []string{"c", "ns"}},
		{"the same again: no word", func() { o.Set(pair, Outcome{Kind: Foreign}) }, nil},
		{"another outcome", func() { o.Set(pair, Outcome{Kind: InPlace, Properties: []string{"p"}}) }, []string{"c", "ns"}},
		{"an equal outcome: no word", func() { o.Set(pair, Outcome{Kind: InPlace, Properties: []string{"p"}}) }, nil},
		{"forgotten", func() { o.Forget(pair) }, []string{"c", "ns"}},
		{"forgotten already: no word", func() { o.Forget(pair) }, nil},
	}
	for _, step := range steps {
		step.do()
		if diff := cmp.Diff(step.want, reported()); diff != "" {
			t.Errorf("%s: reported (-want +got):\n%s", step.what, diff)
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
