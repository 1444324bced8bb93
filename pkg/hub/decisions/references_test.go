package decisions

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// A profile that is being deleted, for instance with its namespace, is not referred to when
// the Placement is recreated before the profile.
func TestAForgottenProfileIsNotReferredTo(t *testing.T) {
	r := NewReferences(nil)
	placement, pair := types.NamespacedName{Namespace: "team", Name: "p"},
		types.NamespacedName{Namespace: "team", Name: "c"}
	r.Allow(t.Context(), pair, selection.Yes)
	if !r.begin(placement, []string{"c"}) || !r.allowsAny() {
		t.Fatal("a profile that is whole may not be referred to")
	}
	r.seen(placement, []string{"c"})
	r.Allow(t.Context(), pair, selection.Unknown)
	if r.begin(placement, []string{"c"}) || r.allowsAny() {
		t.Error("a profile that is not there may be referred to")
	}
}

// A profile that was about to be deleted, and stays after all, keeps its references.
func TestAProfileThatStaysKeepsItsReferences(t *testing.T) {
	r := NewReferences(nil)
	pair := types.NamespacedName{Namespace: "team", Name: "c"}
	r.set(pair, selection.No)
	if !r.refusesAny(pair.Namespace) {
		t.Error("nothing is about to go")
	}
	r.Allow(t.Context(), pair, selection.Unknown)
	if r.of(pair) != selection.Unknown || r.refusesAny(pair.Namespace) {
		t.Error("its references are about to go")
	}
}

// After a start, pairs may have been reconciled before the slices were known.
func TestWrongReferencesEnqueueTheirPairs(t *testing.T) {
	going, others := ocmtest.OurProfile("team", "going"), ocmtest.OurProfile("team", "others")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"f"}
	others.Spec.ClusterManager.Name = "another-manager"
	r := &Reconciler{
		opts: Options{References: NewReferences(nil)},
		reader: fake.NewClientBuilder().WithScheme(ocmtest.Scheme()).
			WithObjects(going, others, ocmtest.OurProfile("team", "ours")).Build(),
	}
	var asked []string
	r.opts.References.Subscribe(func(pair types.NamespacedName) { asked = append(asked, pair.Name) })
	present := map[string]selection.Group{"going": {}, "others": {}, "ours": {}, "gone": {}, "allowed": {}, "refused": {}}
	of := func(cluster string) selection.Answer {
		return map[string]selection.Answer{"allowed": selection.Yes, "refused": selection.No}[cluster]
	}
	if err := r.askAbout(t.Context(), "team", present, of); err != nil {
		t.Fatal(err)
	}
	slices.Sort(asked)
	if want := []string{"going", "gone", "others"}; !slices.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
}

// BenchmarkAnswers records and asks about one pair of a namespace while as many others may be
// referred to as there are clusters, or must not be. The ratio shows how the cost grows with them.
func BenchmarkAnswers(b *testing.B) {
	for _, answer := range []selection.Answer{selection.Yes, selection.No} {
		var small time.Duration
		for _, fleet := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("answer=%d/clusters=%d", answer, fleet), func(b *testing.B) {
				r, pair := NewReferences(nil), types.NamespacedName{Namespace: "team", Name: "c"}
				for i := range fleet {
					r.set(types.NamespacedName{Namespace: "team", Name: fmt.Sprint("c", i)}, answer)
				}
				for b.Loop() {
					r.Allow(b.Context(), pair, selection.Unknown)
					r.refusesAny(pair.Namespace)
					r.allowsAny()
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
