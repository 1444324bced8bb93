package release

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const foreignFinalizer = "example.com/foreign"

// removal is an addon being removed, on a cluster in a given state.
type removal struct {
	*Reconciler
	*world
	clock    *testingclock.FakePassiveClock
	recorder *events.FakeRecorder
	addon    *addonv1beta1.ManagedClusterAddOn
}

func newRemoval(t *testing.T, available metav1.ConditionStatus, finalizers ...string) *removal {
	t.Helper()
	w := newWorld(t)
	if len(finalizers) == 0 {
		finalizers = []string{hookFinalizer}
	}
	addon := w.Addon(append(finalizers, foreignFinalizer)...)
	w.Cluster(addon.Namespace, available)
	w.MustDelete(addon)
	w.Wire.Reset()
	r := &removal{
		world:    w,
		clock:    testingclock.NewFakePassiveClock(time.Now()),
		recorder: events.NewFakeRecorder(10),
		addon:    addon,
	}
	r.Reconciler = &Reconciler{
		Client: w, Live: w, Recorder: r.recorder, Clock: r.clock,
		Options: Options{Unreachable: 5 * time.Minute, Job: 30 * time.Minute},
	}
	return r
}

func (r *removal) reconcile() (reconcile.Result, error) {
	return r.Reconcile(r.T.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: r.addon.Namespace}})
}

func (r *removal) finalizers() []string {
	r.T.Helper()
	addon := r.addon.DeepCopy()
	r.MustGet(addon)
	return addon.Finalizers
}

// Objects on a hosting cluster are not deleted with the addon.
func TestReconcileReleasesAHostedAgentAndItsHost(t *testing.T) {
	r := newRemoval(t, metav1.ConditionTrue,
		"addon.open-cluster-management.io/hosting-addon-pre-delete",
		"addon.open-cluster-management.io/hosting-manifests-cleanup")
	r.HostedAgents = true
	host := r.Namespace("host", nil)
	work := func(name, of string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: host, Name: name, Labels: map[string]string{
			addonv1beta1.AddonLabelKey: "cluster-inventory", addonv1beta1.AddonNamespaceLabelKey: of,
		}}}
	}
	deploy := work("addon-cluster-inventory-deploy-hosting-"+r.addon.Namespace+"-0", r.addon.Namespace)
	cleanup := work("addon-cluster-inventory-pre-delete-hosting-"+r.addon.Namespace, r.addon.Namespace)
	others := work("addon-cluster-inventory-deploy-hosting-another-0", "another")
	r.MustCreate(deploy, cleanup, others)
	apitest.EditStatus(r, cleanup, func(w *workv1.ManifestWork) {
		w.Status.Conditions = []metav1.Condition{{
			Type: "Applied", Status: "False", Reason: "R", Message: "no such namespace", LastTransitionTime: metav1.Now(),
		}}
	})

	if _, err := r.reconcile(); err != nil || !r.Find(deploy.DeepCopy()) {
		t.Fatalf("before its time: %v", err)
	}
	r.clock.SetTime(time.Now().Add(31 * time.Minute))
	if _, err := r.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := r.finalizers(); !slices.Equal(got, []string{foreignFinalizer}) {
		t.Errorf("finalizers %v", got)
	}
	for _, work := range []*workv1.ManifestWork{deploy, cleanup} {
		if r.Find(work.DeepCopy()) {
			t.Errorf("%s is left on the host", work.Name)
		}
	}
	if !r.Find(others) {
		t.Error("another cluster's agent was removed from the host")
	}
	if event := <-r.recorder.Events; !strings.Contains(event, "no such namespace") {
		t.Errorf("event %q", event)
	}
}

// What may be on a hosting cluster stays there, and the addon with it, while the manager does
// not manage it.
func TestReconcileLeavesAHostedAgentThatIsNotManaged(t *testing.T) {
	r := newRemoval(t, metav1.ConditionUnknown, "addon.open-cluster-management.io/hosting-manifests-cleanup")
	before := r.finalizers()
	r.clock.SetTime(time.Now().Add(24 * time.Hour))
	r.Wire.Reset()
	if _, err := r.reconcile(); err != nil {
		t.Fatal(err)
	}
	if writes := r.Wire.Writes(); len(writes) > 0 || !slices.Equal(r.finalizers(), before) {
		t.Errorf("writes %v, finalizers %v", writes, r.finalizers())
	}
}

func TestReconcileReleasesALostSpoke(t *testing.T) {
	r := newRemoval(t, metav1.ConditionUnknown)

	result, err := r.reconcile()
	if err != nil || result.RequeueAfter <= 4*time.Minute || result.RequeueAfter > 5*time.Minute+time.Second {
		t.Fatalf("at first: %+v, %v; want to come back at the timeout", result, err)
	}
	if writes := r.Wire.Writes(); len(writes) > 0 {
		t.Errorf("writes before the timeout: %v", writes)
	}

	r.clock.SetTime(time.Now().Add(6 * time.Minute))
	if result, err := r.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("after the timeout: %+v, %v", result, err)
	}
	if got := r.finalizers(); !slices.Equal(got, []string{foreignFinalizer}) {
		t.Errorf("finalizers %v, want the foreign one alone", got)
	}
	for _, about := range []string{"addon", "cluster"} {
		select {
		case event := <-r.recorder.Events:
			if !strings.HasPrefix(event, "Warning CleanupAbandoned") || !strings.Contains(event, "ClusterClaims") {
				t.Errorf("event about the %s: %q", about, event)
			}
		default:
			t.Errorf("no event about the %s", about)
		}
	}

	r.Wire.Reset()
	if _, err := r.reconcile(); err != nil {
		t.Fatal(err)
	}
	if writes := r.Wire.Writes(); len(writes) > 0 || len(r.recorder.Events) > 0 {
		t.Errorf("writes %v or %d events although it let go already", writes, len(r.recorder.Events))
	}
}

func TestReconcileWaitsForTheJobOfAReachableSpoke(t *testing.T) {
	r := newRemoval(t, metav1.ConditionTrue)
	began := r.clock.Now()
	result, err := r.reconcile()
	if err != nil || result.RequeueAfter <= 29*time.Minute || result.RequeueAfter > 30*time.Minute+time.Second {
		t.Fatalf("at first: %+v, %v; want to come back when the Job's time is over", result, err)
	}
	r.clock.SetTime(began.Add(29 * time.Minute))
	if _, err := r.reconcile(); err != nil {
		t.Fatal(err)
	}
	if writes := r.Wire.Writes(); len(writes) > 0 || len(r.recorder.Events) > 0 {
		t.Errorf("writes %v or %d events before the Job's time is over", writes, len(r.recorder.Events))
	}

	r.work(r.addon.Namespace, "addon-cluster-inventory-pre-delete", "cluster-inventory")
	r.clock.SetTime(began.Add(31 * time.Minute))
	if result, err := r.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("after its time: %+v, %v", result, err)
	}
	if got := r.finalizers(); !slices.Equal(got, []string{foreignFinalizer}) {
		t.Errorf("finalizers %v, want the foreign one alone", got)
	}
	for _, about := range []string{"addon", "cluster"} {
		select {
		case event := <-r.recorder.Events:
			for _, part := range []string{
				"Warning CleanupAbandoned", "within 30m0s", "has not applied ManifestWork", "ClusterClaims",
			} {
				if !strings.Contains(event, part) {
					t.Errorf("the event about the %s does not say %q: %q", about, part, event)
				}
			}
		default:
			t.Errorf("no event about the %s", about)
		}
	}
}

func TestReconcileWaitsForTheJobAfterAStart(t *testing.T) {
	r := newRemoval(t, metav1.ConditionTrue)
	r.clock.SetTime(time.Now().Add(24 * time.Hour)) // no manager ran all day
	if result, err := r.reconcile(); err != nil || result.RequeueAfter != 30*time.Minute {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := r.finalizers(); !slices.Contains(got, hookFinalizer) {
		t.Errorf("finalizers %v", got)
	}
}

// A hub whose managers restart more often than a Job's time is over.
func TestReconcileReleasesTheJobAlthoughManagersRestart(t *testing.T) {
	r := newRemoval(t, metav1.ConditionTrue)
	r.work(r.addon.Namespace, "addon-cluster-inventory-pre-delete", "cluster-inventory")
	began := r.clock.Now()
	restart := func(after, want time.Duration) {
		t.Helper()
		r.clock.SetTime(began.Add(after))
		r.Reconciler = &Reconciler{
			Client: r.world, Live: r.world, Recorder: r.recorder, Clock: r.clock, Options: r.Options,
		}
		if result, err := r.reconcile(); err != nil || result.RequeueAfter.Round(time.Minute) != want {
			t.Errorf("after %s: %+v, %v; want to come back after %s", after, result, err, want)
		}
	}
	for after := 5 * time.Minute; after < 30*time.Minute; after += 5 * time.Minute {
		restart(after, 30*time.Minute-after)
	}
	restart(35*time.Minute, time.Minute)
	if got := r.finalizers(); !slices.Contains(got, hookFinalizer) {
		t.Errorf("finalizers %v, although the manager has just started", got)
	}
	r.clock.SetTime(began.Add(36 * time.Minute))
	if result, err := r.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("in the end: %+v, %v", result, err)
	}
	if got := r.finalizers(); slices.Contains(got, hookFinalizer) {
		t.Errorf("finalizers %v", got)
	}
}

func TestReconcileReturnsConflictsAndEmitsNoWrongEvent(t *testing.T) {
	r := newRemoval(t, metav1.ConditionUnknown)
	r.clock.SetTime(time.Now().Add(6 * time.Minute))
	r.Wire.FailNthWrite(1, apitest.Fault{Status: 409, Reason: "Conflict"})
	if _, err := r.reconcile(); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want the conflict", err)
	}
	if len(r.recorder.Events) > 0 {
		t.Error("an event says that it let go, but it did not")
	}
	r.Wire.Fail(nil)
	if _, err := r.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := r.finalizers(); slices.Contains(got, hookFinalizer) {
		t.Errorf("finalizers %v", got)
	}
}

func TestReconcileOfDeletedObjects(t *testing.T) {
	r := newRemoval(t, metav1.ConditionUnknown)
	r.addon.Namespace = "gone"
	if result, err := r.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestBeingRemoved(t *testing.T) {
	removed := metav1.Now()
	tests := map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"this addon, removed": {
			meta: metav1.ObjectMeta{Name: "cluster-inventory", DeletionTimestamp: &removed},
			want: true,
		},
		"this addon, not deleted": {meta: metav1.ObjectMeta{Name: "cluster-inventory"}},
		"another addon, removed":  {meta: metav1.ObjectMeta{Name: "another", DeletionTimestamp: &removed}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := beingRemoved(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: test.meta}); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestReachabilityChanged(t *testing.T) {
	cluster := func(status metav1.ConditionStatus, labels ...string) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{}
		for _, label := range labels {
			c.Labels = map[string]string{label: ""}
		}
		if status != "" {
			c.Status.Conditions = []metav1.Condition{{Type: "ManagedClusterConditionAvailable", Status: status}}
		}
		return c
	}
	tests := map[string]struct {
		before, after *clusterv1.ManagedCluster
		want          bool
	}{
		"gone away":     {before: cluster("True"), after: cluster("Unknown"), want: true},
		"come back":     {before: cluster("False"), after: cluster("True"), want: true},
		"first seen":    {before: cluster(""), after: cluster("True"), want: true},
		"a heartbeat":   {before: cluster("True"), after: cluster("True")},
		"another label": {before: cluster("True"), after: cluster("True", "x")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reachabilityChanged(test.before, test.after); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestClusterOfAddon(t *testing.T) {
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "cluster-inventory"}}
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "c1"}}}
	if got := clusterOfAddon(t.Context(), addon); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// An addon and the works of its cluster wait for the same spoke: failing to release one
// must not delay the other.
func TestReconcileReleasesTheWorksAlthoughTheAddonFails(t *testing.T) {
	r := newRemoval(t, metav1.ConditionUnknown)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: r.addon.Namespace}}
	apitest.Edit(r, cluster, func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{foreignFinalizer} })
	work := r.work(cluster.Name, "addon-cluster-inventory-deploy-0", "cluster-inventory")
	r.MustDelete(cluster, work)
	r.clock.SetTime(time.Now().Add(6 * time.Minute))
	r.Wire.FailNthWrite(1, apitest.Fault{Status: 500, Reason: "InternalError"})
	if _, err := r.reconcile(); err == nil {
		t.Error("the failure is not returned")
	}
	r.MustGet(work)
	if slices.Contains(work.Finalizers, workFinalizer) || !slices.Contains(r.finalizers(), hookFinalizer) {
		t.Errorf("finalizers %v of the work, %v of the addon", work.Finalizers, r.finalizers())
	}
	r.Wire.Fail(nil)
	if _, err := r.reconcile(); err != nil || slices.Contains(r.finalizers(), hookFinalizer) {
		t.Errorf("%v, finalizers %v of the addon", err, r.finalizers())
	}
}

func TestReconcileLeavesTheNextInstallation(t *testing.T) {
	r := newRemoval(t, metav1.ConditionUnknown)
	r.clock.SetTime(time.Now().Add(6 * time.Minute))
	r.Client = aged{r.Client}
	if _, err := r.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := r.finalizers(); !slices.Contains(got, hookFinalizer) {
		t.Errorf("finalizers %v of an addon that the cache had not seen yet", got)
	}
}

// aged is a client whose cache still holds the previous addon of that name.
type aged struct{ client.Client }

func (a aged) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := a.Client.Get(ctx, key, object, opts...)
	if addon, ok := object.(*addonv1beta1.ManagedClusterAddOn); ok {
		addon.UID = "previous"
	}
	return err
}
