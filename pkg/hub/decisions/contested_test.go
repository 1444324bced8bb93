package decisions

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// one is a slice on a real API server, and a Reconciler whose writes the test sends.
type one struct {
	*world
	*Reconciler

	observed observed
}

func newOne(t *testing.T, clusters ...string) *one {
	t.Helper()
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	s := &one{
		world: w, Reconciler: newReconciler(&Decisions{
			reader: w.Hub, opts: Options{Clock: w.time}, unseen: &kube.Memory[types.NamespacedName, unseen]{},
		}, w.Hub),
		observed: observed{objects: map[string]*inventoryv1alpha1.PlacementDecision{}},
	}
	apitest.Must(t, s.send(t.Context(), s.placement(), s.observed, write{action: create, slice: s.with(clusters...)}))
	return s
}

func (s *one) placement() types.NamespacedName {
	return types.NamespacedName{Namespace: s.ns, Name: "p"}
}

func (s *one) with(clusters ...string) slice {
	return slice{name: "p-profiles-0", clusters: clusters}
}

// another merges another client's patch into the slice, which is observed after that.
func (s *one) another(patch string) {
	s.T.Helper()
	decision := &inventoryv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.ns, Name: s.with().name,
	}}
	s.MustMerge(decision, patch)
	s.MustGet(decision)
	s.observed.objects[decision.Name] = trimDecision(decision)
}

func (s *one) put(clusters ...string) error {
	return s.send(s.T.Context(), s.placement(), s.observed, write{action: update, slice: s.with(clusters...)})
}

func (s *one) isContested(err error) bool {
	s.T.Helper()
	contention := &kube.ContestedError{}
	if err != nil && !errors.As(err, &contention) {
		s.T.Fatal(err)
	}
	return err != nil
}

func TestASliceThatAnotherClientKeepsChangingIsRepairedLessOften(t *testing.T) {
	s := newOne(t, "a", "b")
	change := func(n int) { s.another(fmt.Sprintf(`{"schedulerName":"somebody-%d"}`, n)) }
	for n := range kube.RepairsAtOnce {
		change(n)
		apitest.Must(t, s.put("a", "b"))
	}
	change(kube.RepairsAtOnce)
	err := s.put("a", "b")
	if !s.isContested(err) {
		t.Fatal("it was repaired again")
	}
	const want = "PlacementDecisions of SIG-Multicluster are not up to date: patching PlacementDecision p-profiles-0: " +
		"another client keeps changing it, so it is repaired at most every 10s; find out which one, for instance " +
		"from its metadata.managedFields."
	if notice := contestedNotice("p", err); notice.Reason != "PlacementDecisionContested" || notice.Text != want {
		t.Errorf("the notice is %s: %q", notice.Reason, notice.Text)
	}
	// What must go does not wait for that.
	apitest.Must(t, s.put("a"))
	change(kube.RepairsAtOnce + 1)
	if !s.isContested(s.put("a")) {
		t.Error("it was repaired after a withdrawal")
	}
	s.time.Set(watch.RestoreTime + kube.RepairEvery + time.Second)
	apitest.Must(t, s.put("a"))
}

func TestForeignFieldsOfASliceCauseNoWait(t *testing.T) {
	s := newOne(t, "a")
	clusters := []string{"a"}
	for n := range 2 * kube.RepairsAtOnce {
		s.another(fmt.Sprintf(`{"metadata":{"labels":{"team":"theirs-%d"}}}`, n))
		clusters = append(clusters, fmt.Sprintf("c-%02d", n))
		apitest.Must(t, s.put(clusters...))
	}
}
