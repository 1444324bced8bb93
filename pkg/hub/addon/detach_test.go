package addon

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const workFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"

// newWork makes a work that the spoke's work agent holds.
func newWork(t *testing.T, c client.Client, cluster, name, addon string) *workv1.ManifestWork {
	t.Helper()
	return create(t, c, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: name, Finalizers: []string{workFinalizer, foreignFinalizer},
		Labels: map[string]string{"open-cluster-management.io/addon-name": addon},
	}})
}

func TestDetachReleasesOurDeletedWorksOfALostSpoke(t *testing.T) {
	c, wire := newClient(t)
	name := hub.Namespace(t, nil)
	cluster := create(t, c, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{foreignFinalizer}}})
	ours := newWork(t, c, name, "addon-cluster-inventory-deploy-0", "cluster-inventory")
	others := newWork(t, c, name, "addon-another-deploy-0", "another")
	clock := testingclock.NewFakePassiveClock(time.Now())
	r := &DetachReconciler{Client: c, Live: c, Clock: clock, Timeout: 5 * time.Minute}
	step := func(want time.Duration, writes int) {
		t.Helper()
		wire.Reset()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		if err != nil || result.RequeueAfter.Round(time.Minute) != want.Round(time.Minute) || (result.RequeueAfter == 0) != (want == 0) {
			t.Errorf("%+v, %v; want to come back in about %s", result, err, want)
		}
		if got := len(wire.Writes()); got != writes {
			t.Errorf("%d writes, want %d: %v", got, writes, wire.Writes())
		}
	}

	step(0, 0) // nobody deletes the cluster
	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	step(5*time.Minute, 0)
	clock.SetTime(time.Now().Add(6 * time.Minute))
	step(detachRetry, 0) // nobody has deleted the work yet
	for _, work := range []*workv1.ManifestWork{ours, others} {
		if err := c.Delete(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
	step(0, 1)
	step(0, 0)

	for work, want := range map[*workv1.ManifestWork][]string{ours: {foreignFinalizer}, others: {workFinalizer, foreignFinalizer}} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(work.Finalizers, want) {
			t.Errorf("finalizers of %s: %v, want %v", work.Name, work.Finalizers, want)
		}
	}
}

func TestDetachWaitsForASpokeThatIsThere(t *testing.T) {
	c, _ := newClient(t)
	name := hub.Namespace(t, nil)
	cluster := create(t, c, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{foreignFinalizer}}})
	cluster.Status.Conditions = []metav1.Condition{{Type: "ManagedClusterConditionAvailable", Status: "True", Reason: "Test", LastTransitionTime: metav1.Now()}}
	if err := c.SubResource("status").Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	work := newWork(t, c, name, "addon-cluster-inventory-deploy-0", "cluster-inventory")
	for _, object := range []client.Object{cluster, work} {
		if err := c.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	r := &DetachReconciler{Client: c, Live: c, Clock: testingclock.NewFakePassiveClock(time.Now().Add(24 * time.Hour)), Timeout: 5 * time.Minute}
	if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil || result.RequeueAfter != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil || !slices.Contains(work.Finalizers, workFinalizer) {
		t.Errorf("the work was released: %v, %v", work.Finalizers, err)
	}
}
