package release

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const workFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"

// work creates a work that the spoke's work agent holds.
func (w *world) work(cluster, name, addon string) *workv1.ManifestWork {
	w.T.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: name, Finalizers: []string{workFinalizer, foreignFinalizer},
		Labels: map[string]string{"open-cluster-management.io/addon-name": addon},
	}}
	w.MustCreate(work)
	return work
}

func newReconciler(w *world, now time.Time) (*Reconciler, *testingclock.FakePassiveClock) {
	clock := testingclock.NewFakePassiveClock(now)
	return &Reconciler{
		Client: w, Live: w, Recorder: events.NewFakeRecorder(10), Clock: clock,
		Options: Options{Unreachable: 5 * time.Minute, Job: time.Hour},
	}, clock
}

func TestOurDeletedWorksOfALostSpokeAreReleased(t *testing.T) {
	w := newWorld(t)
	name := w.Namespace("cluster", nil)
	cluster := w.Cluster(name, "", foreignFinalizer)
	ours := w.work(name, "addon-cluster-inventory-deploy-0", "cluster-inventory")
	others := w.work(name, "addon-another-deploy-0", "another")
	r, clock := newReconciler(w, time.Now())
	step := func(want time.Duration, writes int) {
		t.Helper()
		w.Wire.Reset()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		if err != nil || result.RequeueAfter.Round(time.Minute) != want.Round(time.Minute) ||
			(result.RequeueAfter == 0) != (want == 0) {
			t.Errorf("%+v, %v; want to come back in about %s", result, err, want)
		}
		if got := len(w.Wire.Writes()); got != writes {
			t.Errorf("%d writes, want %d: %v", got, writes, w.Wire.Writes())
		}
	}

	step(0, 0) // the cluster is not being deleted
	w.MustDelete(cluster)
	step(5*time.Minute, 0)
	clock.SetTime(time.Now().Add(6 * time.Minute))
	step(worksRetry, 0) // the work is not being deleted yet
	w.MustDelete(ours, others)
	step(0, 1)
	step(0, 0)

	for work, want := range map[*workv1.ManifestWork][]string{
		ours:   {foreignFinalizer},
		others: {workFinalizer, foreignFinalizer},
	} {
		w.MustGet(work)
		if !slices.Equal(work.Finalizers, want) {
			t.Errorf("finalizers of %s: %v, want %v", work.Name, work.Finalizers, want)
		}
	}
}

func TestWorksOfAReachableSpokeAreNotReleased(t *testing.T) {
	w := newWorld(t)
	name := w.Namespace("cluster", nil)
	cluster := w.Cluster(name, metav1.ConditionTrue, foreignFinalizer)
	work := w.work(name, "addon-cluster-inventory-deploy-0", "cluster-inventory")
	w.MustDelete(cluster, work)
	r, _ := newReconciler(w, time.Now().Add(24*time.Hour))
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	if err != nil || result.RequeueAfter != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	w.MustGet(work)
	if !slices.Contains(work.Finalizers, workFinalizer) {
		t.Errorf("the work was released: %v", work.Finalizers)
	}
}

func TestBeingDetached(t *testing.T) {
	removed := metav1.Now()
	if beingDetached(&clusterv1.ManagedCluster{}) {
		t.Error("a cluster that is not being deleted is being detached")
	}
	if !beingDetached(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &removed}}) {
		t.Error("a deleted cluster is not being detached")
	}
}
