package decisions

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// newDecisions returns Decisions whose slices are not known yet, and an empty list of the pairs
// of which they say that nothing refers to them any more.
func newDecisions(reader client.Reader) (d *Decisions, released *[]string) {
	d = &Decisions{
		reader: reader,
		opts: Options{
			Rule: selection.New(nil, nil, watch.NewDefinitions(nil, clock.RealClock{}), clock.RealClock{}),
		},
		unseen: &kube.Memory[types.NamespacedName, unseen]{},
	}
	d.opts.Rule.SubscribeReferences(func(pair types.NamespacedName) { d.follow(context.Background(), pair) })
	released = &[]string{}
	d.Subscribe(func(pair types.NamespacedName) { *released = append(*released, pair.Name) })
	return d, released
}

// A profile that is being deleted, for instance with its namespace, is not referred to when
// the Placement is recreated before the profile.
func TestAForgottenProfileIsNotReferredTo(t *testing.T) {
	d, _ := newDecisions(fake.NewFakeClient())
	placement, pair := types.NamespacedName{Namespace: "team", Name: "p"},
		types.NamespacedName{Namespace: "team", Name: "c"}
	d.opts.Rule.AllowReferences(pair, selection.Yes)
	if !d.begin(t.Context(), placement, []string{"c"}) || !d.mayReferToAny() {
		t.Fatal("a profile that is whole may not be referred to")
	}
	d.seen(t.Context(), placement)
	d.opts.Rule.AllowReferences(pair, selection.Unknown)
	if d.begin(t.Context(), placement, []string{"c"}) || d.mayReferToAny() {
		t.Error("a profile that is not there may be referred to")
	}
}

// A write that would add a reference is taken back if the profile is about to go, and the writer
// of profiles, which may have seen it, hears of that.
func TestAReferenceThatMayNotBeAddedIsTakenBack(t *testing.T) {
	served := interceptor.Funcs{Get: func(
		context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
	) error {
		return nil
	}}
	reader := fake.NewClientBuilder().WithScheme(ocmtest.Scheme()).WithInterceptorFuncs(served)
	for _, index := range indexes {
		reader = reader.WithIndex(&inventoryv1alpha1.PlacementDecision{}, index.name, index.extract)
	}
	d, released := newDecisions(reader.Build())
	placement := types.NamespacedName{Namespace: "team", Name: "p"}
	pair := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: name} }
	refers := func(want selection.Answer) {
		t.Helper()
		if got := d.Refer(t.Context(), pair("goes")); got != want {
			t.Errorf("refer: %d, want %d", got, want)
		}
	}
	refers(selection.Unknown)
	d.started.Store(true)
	refers(selection.No)
	d.unseen.Set(placement, unseen{adding: []string{"goes", "stays"}})
	refers(selection.Yes)
	d.opts.Rule.AllowReferences(pair("goes"), selection.No)
	if d.begin(t.Context(), placement, []string{"goes", "stays"}) {
		t.Error("a reference to a profile that is about to go is added")
	}
	refers(selection.No)
	if !slices.Equal(*released, []string{"goes"}) {
		t.Errorf("released %v", *released)
	}
}

// After a start, pairs may have been reconciled before the slices were known.
func TestWrongReferencesEnqueueTheirPairs(t *testing.T) {
	d, asked := newDecisions(fake.NewClientBuilder().WithScheme(ocmtest.Scheme()).
		WithObjects(ocmtest.OurProfile("team", "ours")).Build())
	d.opts.Rule.AllowReferences(types.NamespacedName{Namespace: "team", Name: "allowed"}, selection.Yes)
	d.opts.Rule.AllowReferences(types.NamespacedName{Namespace: "team", Name: "refused"}, selection.No)
	present := map[string]selection.Group{"ours": {}, "gone": {}, "allowed": {}, "refused": {}}
	if err := d.askAbout(t.Context(), "team", present); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*asked, []string{"gone"}) {
		t.Errorf("asked about %v", *asked)
	}
}

// The first profile that may be referred to concerns Placements that wait for one.
func TestPlacementsWaitForAnyProfile(t *testing.T) {
	d, _ := newDecisions(fake.NewFakeClient())
	pair := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: name} }
	for _, step := range []struct {
		name   string
		answer selection.Answer
		any    bool
	}{
		{"a", selection.Unknown, false}, {"a", selection.Yes, true}, {"a", selection.Yes, true}, {"b", selection.Yes, true},
		{"a", selection.No, true}, {"b", selection.Unknown, false},
	} {
		d.waiting.Store(false)
		d.opts.Rule.AllowReferences(pair(step.name), step.answer)
		if got := d.mayReferToAny(); got != step.any || d.waiting.Load() == step.any {
			t.Errorf("%+v: any %t, waiting %t", step, got, d.waiting.Load())
		}
	}
}

// BenchmarkAnswers records and asks about one pair of a namespace while as many others may be
// referred to as there are clusters, or must not be. The ratio shows how the cost grows with them.
func BenchmarkAnswers(b *testing.B) {
	for _, answer := range []selection.Answer{selection.Yes, selection.No} {
		var small time.Duration
		for _, fleet := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("answer=%d/clusters=%d", answer, fleet), func(b *testing.B) {
				d, _ := newDecisions(fake.NewFakeClient())
				pair := types.NamespacedName{Namespace: "team", Name: "c"}
				for i := range fleet {
					d.opts.Rule.AllowReferences(types.NamespacedName{Namespace: "team", Name: fmt.Sprint("c", i)}, answer)
				}
				for b.Loop() {
					d.opts.Rule.AllowReferences(pair, selection.Yes)
					d.opts.Rule.AllowReferences(pair, selection.Unknown)
					d.mayReferToAny()
				}
				each := b.Elapsed() / time.Duration(b.N)
				if small == 0 {
					small = each
				}
				b.ReportMetric(float64(each)/float64(max(small, 1)), "ratio")
			})
		}
	}
}
