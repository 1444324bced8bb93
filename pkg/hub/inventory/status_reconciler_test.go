package inventory

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// reporting is the status reconciler over a stepper's hub and outcomes.
type reporting struct {
	*stepper
	status *StatusReconciler
}

func newReporting(t *testing.T) *reporting {
	s := newStepper(t, mapHub)
	opts := Options{Rule: s.rule, Guard: s.guard, Clock: s.time}
	routes := s.rule.Routes(s.r.outcomes)
	return &reporting{stepper: s, status: newStatusReconciler(s.cache, s.r.writer, opts, routes, s.r.outcomes)}
}

// report reconciles the condition once and checks what was written.
func (r *reporting) report(want ...string) reconcile.Result {
	r.T.Helper()
	r.wire.Reset()
	result, err := r.status.Reconcile(r.T.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: r.c.Name}})
	if err != nil {
		r.T.Fatalf("reconcile: %v", err)
	}
	if diff := cmp.Diff(want, r.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
		r.T.Fatalf("writes (-want +got):\n%s", diff)
	}
	return result
}

func (r *reporting) reads(status, reason, message string) {
	r.T.Helper()
	got := r.AddonCondition(r.c.Name, "ProfilesSynced")
	if diff := cmp.Diff([]string{status, reason, message}, []string{string(got.Status), got.Reason, got.Message}); diff != "" {
		r.T.Errorf("condition (-want +got):\n%s", diff)
	}
}

const patchAddon = "PATCH managedclusteraddons/status"

func TestTheConditionIsWrittenFromFullKnowledgeOnly(t *testing.T) {
	r := newReporting(t)
	second := r.Namespace("team", nil)
	r.Bind(second, r.members.Name)

	r.status.rule = selection.New(r.cache, r.time)
	if result := r.report(); result.RequeueAfter == 0 {
		t.Error("before the pairs' controller runs, nobody will tell: it must look again")
	}
	r.status.rule = r.rule
	r.report() // no pair has been looked at
	r.mustStep(post, patchStatus)
	r.report() // only one has
	r.r.outcomes.set(types.NamespacedName{Namespace: second, Name: r.c.Name}, outcome{kind: foreign, why: "has theirs", bindings: []string{"b"}})
	r.report(patchAddon)
	r.reads("False", "ForeignProfile", "In "+second+": the cluster has theirs. Profiles in place in: "+r.ns+".")
	r.report()
}

// TestTheConditionDoesNotWaitForASetThatSelectsByOtherLabels: the set's name as
// the cluster's label makes it no member, so no pair will ever have an outcome
// there.
func TestTheConditionDoesNotWaitForASetThatSelectsByOtherLabels(t *testing.T) {
	r := newReporting(t)
	other := r.Set("other", clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"in": "nothing"}},
	})
	r.Bind(r.Namespace("team", nil), other.Name)
	apitest.Edit(r, r.c, func(c *clusterv1.ManagedCluster) {
		c.Labels["cluster.open-cluster-management.io/clusterset"] = other.Name
	})
	r.mustStep()
	r.report(patchAddon)
	r.reads("True", "NotSelected", "No namespace is to hold a profile.")
	r.report()
}

// TestTheConditionIsWrittenOnceWhenAProfileGoes: not when it is deleted and again
// when the cache has seen it go.
func TestTheConditionIsWrittenOnceWhenAProfileGoes(t *testing.T) {
	r := newReporting(t)
	r.mustStep(post, patchStatus)
	r.report(patchAddon)
	apitest.Edit(r, r.mine(), func(p *inventoryv1alpha1.ClusterProfile) { p.Finalizers = []string{"example.com/hold"} })
	apitest.Edit(r, r.c, func(c *clusterv1.ManagedCluster) { c.Labels["cluster.open-cluster-management.io/clusterset"] = "other" })
	r.mustStep(del)
	r.report(patchAddon)
	r.reads("True", "NotSelected", "No namespace is to hold a profile.")
	apitest.Edit(r, r.mine(), func(p *inventoryv1alpha1.ClusterProfile) { p.Finalizers = nil })
	r.mustStep()
	r.report()
}

func TestTheConditionLeavesOthersAlone(t *testing.T) {
	r := newReporting(t)
	r.mustStep(post, patchStatus)
	theirs := []metav1.Condition{ocmtest.Condition("Available", "True", "R", "theirs"), ocmtest.Condition("PropertiesPublished", "True", "Published", "")}
	apitest.EditStatus(r, ocmtest.Addon(r.c.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions = theirs })
	r.report(patchAddon)
	written := ocmtest.Condition("ProfilesSynced", "True", "Synced", "Profiles in place in: "+r.ns+".")
	written.LastTransitionTime = metav1.NewTime(r.time.Now().Truncate(time.Second))
	check := func(want ...metav1.Condition) {
		t.Helper()
		got := ocmtest.Addon(r.c.Name)
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Status.Conditions); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
	check(append(theirs, written)...)

	// Another text, the same status: since when stays.
	r.later(time.Hour)
	second := r.Namespace("team", nil)
	r.Bind(second, r.members.Name)
	r.r.outcomes.set(types.NamespacedName{Namespace: second, Name: r.c.Name}, outcome{kind: inPlace})
	r.report(patchAddon)
	written.Message = "Profiles in place in: " + min(r.ns, second) + ", " + max(r.ns, second) + "."
	check(append(theirs, written)...)
	r.report()

	// Somebody else drops it: it comes back.
	apitest.EditStatus(r, ocmtest.Addon(r.c.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions = theirs[:1] })
	r.report(patchAddon)
}

func TestTheConditionSaysWhatStopsAllWrites(t *testing.T) {
	r := newReporting(t)
	r.guard.blocked.Store(true)
	r.report(patchAddon, "POST events")
	r.reads("False", "UpstreamGateOn", "upstream writes profiles")
	r.report()
	list := &eventsv1.EventList{}
	if err := r.List(t.Context(), list, client.InNamespace(r.c.Name)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Note != "upstream writes profiles" || list.Items[0].Regarding.Kind != "ManagedClusterAddOn" {
		t.Errorf("events = %+v", list.Items)
	}
	r.guard.blocked.Store(false)
	r.mustStep(post, patchStatus)
	r.report(patchAddon)
	r.reads("True", "Synced", "Profiles in place in: "+r.ns+".")
}

func TestTheConditionIsNotWrittenOnAnAddonThatGoes(t *testing.T) {
	r := newReporting(t)
	r.mustStep(post, patchStatus)
	apitest.Edit(r, ocmtest.Addon(r.c.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = []string{"example.com/hold"} })
	r.MustDelete(ocmtest.Addon(r.c.Name))
	r.report()
	apitest.Edit(r, ocmtest.Addon(r.c.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = nil })
	r.report()
}

func TestAConflictOnTheConditionIsReturned(t *testing.T) {
	r := newReporting(t)
	r.mustStep(post, patchStatus)
	r.wire.FailNthWrite(1, apitest.Fault{Status: http.StatusConflict, Reason: "Conflict"})
	_, err := r.status.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: r.c.Name}})
	if !apierrors.IsConflict(err) {
		t.Errorf("reconcile = %v, want the conflict", err)
	}
	r.report(patchAddon)
	r.report()
}

func TestEventsSayWhatIsNew(t *testing.T) {
	s := newStepper(t, mapHub)
	reporter := newReporter(s.cache, s.r.writer, s.time, s.r.outcomes)
	step := func(want ...string) reconcile.Result {
		t.Helper()
		s.wire.Reset()
		result, err := reporter.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: s.ns}})
		if err != nil {
			t.Fatalf("reconcile: %v", err)
		}
		if diff := cmp.Diff(want, s.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("writes (-want +got):\n%s", diff)
		}
		return result
	}
	set := func(cluster string, kind outcomeKind, why string) {
		s.r.outcomes.set(types.NamespacedName{Namespace: s.ns, Name: cluster}, outcome{kind: kind, why: why, bindings: []string{s.members.Name}})
	}
	const postEvent = "POST events"

	step() // nothing to say
	set("c1", withheld, "is out")
	step(postEvent)
	step()
	set("c2", withheld, "is out")
	if result := step(); result.RequeueAfter != 30*time.Second {
		t.Errorf("result = %+v: a second event within half a minute must wait", result)
	}
	s.later(10 * time.Second)
	set("c3", failed, "was refused")
	if result := step(); result.RequeueAfter != 20*time.Second {
		t.Errorf("result = %+v, want to wait what is left", result)
	}
	s.later(20 * time.Second)
	step(postEvent)
	step()
	// In place again, and out again later: said again.
	for _, cluster := range []string{"c1", "c2", "c3"} {
		s.r.outcomes.forget(types.NamespacedName{Namespace: s.ns, Name: cluster})
	}
	step()
	s.later(time.Minute)
	set("c1", withheld, "is out")
	step(postEvent)
	// Of a binding that is gone nothing is said, and it is no error.
	set("c1", withheld, "is away")
	s.later(time.Minute)
	s.MustDelete(s.binding())
	step()

	list := &eventsv1.EventList{}
	if err := s.List(t.Context(), list, client.InNamespace(s.ns)); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, event := range list.Items {
		got[event.Note] = event.Type + " " + event.Reason + " " + event.Regarding.Kind + " " + event.ReportingController
	}
	want := map[string]string{
		"c1 is out":                     "Normal ProfilesWithheld ManagedClusterSetBinding hub.inventory",
		"c1, c2 is out; c3 was refused": "Warning ProfilesWithheld ManagedClusterSetBinding hub.inventory",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
