package report

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// One server plays both spoke and hub; the reconciler has a client for each.
var server = apitest.New(apitest.Hub(), apitest.Spoke(), spoketest.Shipped())

func TestMain(m *testing.M) { apitest.Main(m, server) }

var (
	start = metav1.NewTime(time.Unix(1_700_000_000, 0))
	later = metav1.NewTime(time.Unix(1_700_000_060, 0))
)

type bench struct {
	admin      *apitest.World
	wire       *apitest.Wire
	addon      *addonv1beta1.ManagedClusterAddOn
	clock      *testingclock.FakePassiveClock
	reconciler *Reconciler
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		admin: server.World(t, ocmtest.Scheme()),
		wire:  &apitest.Wire{},
		clock: testingclock.NewFakePassiveClock(start.Time),
	}
	wired := apitest.NewClient(t, b.wire.Tap(server.Config(t)), ocmtest.Scheme())
	b.addon = ocmtest.Addon(b.admin.Namespace("cluster", nil))
	b.admin.MustCreate(b.addon)
	b.reconciler = &Reconciler{
		situation: Situation{API: property.API{Version: "v1alpha1"}, Limit: Limit{Custom: 20}}, addonUID: b.addon.UID,
		metrics: NewMetrics(), clock: b.clock,
		spoke: wired, hub: wired, status: wired.Status(),
	}
	return b
}

func (b *bench) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b.addon)}
}

func (b *bench) reconcile() error {
	_, err := b.reconciler.Reconcile(b.admin.T.Context(), b.request())
	return err
}

func (b *bench) mustReconcile() {
	b.admin.T.Helper()
	apitest.Must(b.admin.T, b.reconcile())
}

func (b *bench) conditions() []metav1.Condition {
	b.admin.T.Helper()
	b.admin.MustGet(b.addon)
	return b.addon.Status.Conditions
}

var (
	available = metav1.Condition{Type: "Available", Status: "True", Reason: "R", Message: "m", LastTransitionTime: start}
	empty     = metav1.Condition{
		Type:               "PropertiesPublished",
		Status:             "True",
		Reason:             "Published",
		Message:            "There are no properties.",
		LastTransitionTime: start,
	}
	stopped = metav1.Condition{
		Type:               "PropertiesPublished",
		Status:             "False",
		Reason:             "PublishingStopped",
		Message:            "The addon is being removed; its ClusterClaims are deleted.",
		LastTransitionTime: later,
	}
)

func TestReportIsWrittenOnceAndOnlyItsEntry(t *testing.T) {
	b := newBench(t)
	apitest.EditStatus(b.admin, b.addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{available}
	})

	b.mustReconcile()
	if diff := cmp.Diff([]metav1.Condition{available, empty}, b.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	b.clock.SetTime(later.Time)
	b.mustReconcile()
	if diff := cmp.Diff([]string{"PATCH managedclusteraddons/status"}, b.wire.Sent()); diff != "" {
		t.Errorf("writes of two passes (-want +got):\n%s", diff)
	}

	b.reconciler.situation.Stopped = true
	b.mustReconcile()
	if diff := cmp.Diff([]metav1.Condition{available, stopped}, b.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestReportCountsClaims(t *testing.T) {
	b := newBench(t)
	objects := []client.Object{
		spoketest.Property("v1alpha1", "a", "v", nil),
		spoketest.Property("v1alpha1", "b", "v", nil),
		&clusterv1alpha1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "a",
				Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"},
			},
		},
		&clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
	}
	b.admin.MustCreate(objects...)
	b.admin.CleanUp(objects...)
	b.mustReconcile()
	want := metav1.Condition{
		Type: "PropertiesPublished", Status: "False", Reason: "PartiallyPublished", LastTransitionTime: start,
		Message: "1 of 2 properties published. Left out: b (a ClusterClaim of that name was created by another client).",
	}
	if diff := cmp.Diff([]metav1.Condition{want}, b.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// New properties whose claims are about to follow do not change the condition; a property
// whose claim never follows does.
func TestClaimIsReportedMissingOnlyOnceItIsLate(t *testing.T) {
	b := newBench(t)
	b.mustReconcile()
	slow := spoketest.Property("v1alpha1", "slow", "v", nil)
	b.admin.MustCreate(slow)
	b.admin.CleanUp(slow)

	result, err := b.reconciler.Reconcile(t.Context(), b.request())
	apitest.Must(t, err)
	if result.RequeueAfter != 5*time.Second {
		t.Errorf("requeued after %s", result.RequeueAfter)
	}
	want := empty
	want.Message = "1 property published."
	if diff := cmp.Diff([]metav1.Condition{want}, b.conditions()); diff != "" {
		t.Errorf("conditions while it is awaited (-want +got):\n%s", diff)
	}

	b.clock.SetTime(later.Time)
	b.mustReconcile()
	want = metav1.Condition{
		Type:               "PropertiesPublished",
		Status:             "False",
		Reason:             "PartiallyPublished",
		LastTransitionTime: later,
		Message: "0 of 1 property published. Left out: slow (its ClusterClaim could not be written yet; " +
			"the agent's log says why).",
	}
	if diff := cmp.Diff([]metav1.Condition{want}, b.conditions()); diff != "" {
		t.Errorf("conditions when it is late (-want +got):\n%s", diff)
	}
}

func TestFailedReportIsAnErrorAndIsRetried(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"conflict":           {Status: http.StatusConflict, Reason: "Conflict"},
		"not allowed":        {Status: http.StatusForbidden, Reason: "Forbidden"},
		"the hub is away":    {Err: errors.New("connection refused")},
		"the answer is lost": {Err: errors.New("connection reset"), AfterServer: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.wire.FailNthWrite(1, fault)
			if err := b.reconcile(); err == nil {
				t.Error("a failed write is no error")
			}
			b.clock.SetTime(b.clock.Now().Add(kube.StaleAfter)) // for which it waits after a conflict
			b.mustReconcile()
			if diff := cmp.Diff([]metav1.Condition{empty}, b.conditions(), cmpopts.EquateApproxTime(kube.StaleAfter)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// old is a reader that returns the addon as it was.
type old struct {
	client.Reader
	addon *addonv1beta1.ManagedClusterAddOn
}

func (o old) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	o.addon.DeepCopyInto(obj.(*addonv1beta1.ManagedClusterAddOn))
	return nil
}

// Until the cache shows what was written, or what another client has, the report waits: from an old
// addon, it would be refused again and again.
func TestAReportWaitsForTheCache(t *testing.T) {
	for name, another := range map[string]bool{"an own write": false, "a conflict": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.admin.MustGet(b.addon)
			current := b.reconciler.hub
			b.reconciler.hub = old{current, b.addon.DeepCopy()}
			if another {
				b.admin.MustMerge(b.addon.DeepCopy(), `{"metadata":{"labels":{"team":"a"}}}`)
			}
			if err := b.reconcile(); (err != nil) != another {
				t.Errorf("the first attempt: %v", err)
			}
			b.reconciler.situation.Stopped = true
			b.wire.Reset()
			result, err := b.reconciler.Reconcile(t.Context(), b.request())
			if err != nil || result.RequeueAfter != kube.StaleAfter {
				t.Errorf("it waits for %s, %v; want %s", result.RequeueAfter, err, kube.StaleAfter)
			}
			if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
				t.Errorf("writes while the cache is old:\n%s", diff)
			}
			b.reconciler.hub = current
			b.mustReconcile()
			if diff := cmp.Diff([]string{"PATCH managedclusteraddons/status"}, b.wire.Sent()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForeignAddonIsLeftAlone(t *testing.T) {
	b := newBench(t)
	b.reconciler.addonUID = types.UID("another")
	b.mustReconcile()
	b.admin.MustDelete(b.addon)
	b.reconciler.addonUID = b.addon.UID
	b.mustReconcile()
	if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
		t.Errorf("writes:\n%s", diff)
	}
}
