package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// reporting is the source of the condition, over a stepper's hub and outcomes.
type reporting struct {
	*stepper
	source statusSource
}

func newReporting(t *testing.T) *reporting {
	s := newStepper(t, mapHub)
	opts := Options{Rule: s.rule, Guard: s.guard.verdict, Clock: s.time, Metrics: metrics.New(metrics.Options{})}
	return &reporting{stepper: s, source: statusSource{&inventory{
		reader: s.cache, opts: opts, routes: s.rule.Routes(s.r.outcomes), pairs: s.r,
	}}}
}

// reads checks what the condition must be; nil is not known.
func (r *reporting) reads(want *conditions.Desired) {
	r.T.Helper()
	got, err := r.source.Desired(r.T.Context(), r.c.Name)
	if err != nil {
		r.T.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.T.Errorf("condition (-want +got):\n%s", diff)
	}
}

// synced is the condition while nothing is wrong.
func synced() *conditions.Desired {
	return &conditions.Desired{Status: "True", Reason: "Synced", Message: syncedText}
}

func TestConditionIsTrueOnlyWithFullKnowledge(t *testing.T) {
	r := newReporting(t)
	second := r.Namespace("team", nil)
	r.Bind(second, r.members.Name)

	r.source.opts.Rule = selection.New(r.cache, r.cache, watch.NewDefinitions(r.cache, r.time), r.time)
	r.reads(nil) // the pairs' controller does not run yet
	r.source.opts.Rule = r.rule
	r.reads(nil) // no pair has been looked at
	r.mustStep(post, patchStatus)
	r.reads(nil) // only one has
	there := types.NamespacedName{Namespace: second, Name: r.c.Name}
	r.r.outcomes.Set(there, report.Outcome{Kind: report.Foreign, Why: "has theirs", Bindings: []string{"b"}})
	wrong := &conditions.Desired{Status: "False", Reason: "ForeignProfile",
		Message: "In " + second + ": the cluster has theirs."}
	r.reads(wrong)
	r.r.outcomes.Forget(r.pair)
	wrong.HoldBack = 30 * time.Second
	r.reads(wrong) // without a first result, a failure of the second is not held back forever
	r.mustStep()
	r.r.outcomes.Set(there, report.Outcome{Kind: report.InPlace})
	r.reads(synced())
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
	r.reads(synced())
}

// TestConditionOfAQueuedPairIsUnknown: when a set is bound, OCM marks the
// binding a moment after it is created, and until all profiles are written, many pairs
// have only been looked at before.
func TestConditionOfAQueuedPairIsUnknown(t *testing.T) {
	r := newReporting(t)
	r.bindingSays()
	r.mustStep()
	unknown, err := r.source.Desired(t.Context(), r.c.Name)
	apitest.Must(t, err)
	if unknown == nil || unknown.Status != metav1.ConditionUnknown || unknown.HoldBack == 0 {
		t.Fatalf("condition = %+v, want Unknown", unknown)
	}
	r.bindingSays(ocmtest.Condition("Bound", "True", "ClusterSetBound", ""))
	r.reads(nil)
	r.mustStep(post, patchStatus)
	r.reads(synced())
}

// TestTheConditionIsTheSameWhereverTheClusterIsPublished: publishing it somewhere
// and withdrawing it write no addon.
func TestTheConditionIsTheSameWhereverTheClusterIsPublished(t *testing.T) {
	r := newReporting(t)
	r.mustStep(post, patchStatus)
	r.reads(synced())
	second := r.Namespace("team", nil)
	r.Bind(second, r.members.Name)
	r.r.outcomes.Set(types.NamespacedName{Namespace: second, Name: r.c.Name}, report.Outcome{Kind: report.InPlace})
	r.reads(synced())

	apitest.Edit(r, r.mine(), func(p *inventoryv1alpha1.ClusterProfile) { p.Finalizers = []string{"example.com/hold"} })
	apitest.Edit(r, r.c,
		func(c *clusterv1.ManagedCluster) { c.Labels["cluster.open-cluster-management.io/clusterset"] = "other" })
	r.mustStep(del)
	r.reads(synced())
	apitest.Edit(r, r.mine(), func(p *inventoryv1alpha1.ClusterProfile) { p.Finalizers = nil })
	r.mustStep()
	r.reads(synced())
}

func TestConditionSaysWhyNothingIsWritten(t *testing.T) {
	r := newReporting(t)
	r.guard.blocked.Store(true)
	r.reads(&conditions.Desired{Status: "False", Reason: "UpstreamGateOn",
		Message: "upstream writes profiles", Warn: true})
	r.guard.blocked.Store(false)
	r.mustStep(post, patchStatus)
	r.reads(synced())

	// A CRD that is re-created is missing for a moment.
	r.cache.missing = "clusterprofiles.multicluster.x-k8s.io"
	r.reads(&conditions.Desired{
		Status: "False", Reason: "ClusterProfileAPIMissing", HoldBack: 5 * time.Second,
		Message: "The hub does not serve ClusterProfiles: the CustomResourceDefinition " +
			"clusterprofiles.multicluster.x-k8s.io is missing.",
	})
}

func TestEventsReportChanges(t *testing.T) {
	s := newStepper(t, mapHub)
	emit := s.reporter(0)
	step := func(want ...string) (again time.Duration) {
		t.Helper()
		s.wire.Reset()
		again = emit(types.NamespacedName{Namespace: s.ns})
		if diff := cmp.Diff(want, s.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("writes (-want +got):\n%s", diff)
		}
		return again
	}
	set := func(cluster string, kind report.Kind, why string) {
		s.r.outcomes.Set(types.NamespacedName{Namespace: s.ns, Name: cluster},
			report.Outcome{Kind: kind, Why: why, Bindings: []string{s.members.Name}})
	}
	const postEvent = "POST events"

	step() // nothing to say
	set("c1", report.Withheld, "is out")
	step(postEvent)
	step()
	set("c2", report.Withheld, "is out")
	if again := step(); again != 30*time.Second {
		t.Errorf("again after %s: a second event within half a minute must wait", again)
	}
	s.later(10 * time.Second)
	set("c3", report.Failed, "was refused")
	if again := step(); again != 20*time.Second {
		t.Errorf("again after %s, want to wait what is left", again)
	}
	s.later(20 * time.Second)
	step(postEvent)
	step()
	// In place again, and out again later: said again.
	for _, cluster := range []string{"c1", "c2", "c3"} {
		s.r.outcomes.Forget(types.NamespacedName{Namespace: s.ns, Name: cluster})
	}
	step()
	s.later(time.Minute)
	set("c1", report.Withheld, "is out")
	step(postEvent)
	// Nothing is reported about a deleted binding, without an error.
	set("c1", report.Withheld, "is away")
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
