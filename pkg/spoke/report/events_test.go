package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// eventBench runs the controller of events step by step.
type eventBench struct {
	*apitest.World
	clock      *testingclock.FakePassiveClock
	reconciler *EventReconciler

	// refusal is the answer to the creation of an event; attempts counts these.
	refusal  error
	attempts int
}

func newEventBench(t *testing.T) *eventBench {
	t.Helper()
	b := &eventBench{
		World: server.World(t, ocmtest.Scheme()), clock: testingclock.NewFakePassiveClock(time.Now()),
	}
	t.Cleanup(func() { b.Clear(property.NewList("v1alpha1")) })
	b.restart()
	return b
}

// restart forgets what the agent remembers.
func (b *eventBench) restart() {
	admin := apitest.NewClient(b.T, server.Config(b.T), ocmtest.Scheme())
	b.reconciler = &EventReconciler{
		situation: Situation{API: property.API{Version: "v1alpha1"}, Limit: Limit{Custom: 20}}, history: NewEventHistory(), clock: b.clock,
		spoke:  admin,
		writer: &eventWriter{admin, b},
	}
}

// eventWriter counts attempts to create events, and refuses them.
type eventWriter struct {
	client.Client
	bench *eventBench
}

func (w *eventWriter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	w.bench.attempts++
	if w.bench.refusal != nil {
		return w.bench.refusal
	}
	return w.Client.Create(ctx, obj, opts...)
}

// pass lets time pass, and reconciles as the manager would.
func (b *eventBench) pass(d time.Duration) reconcile.Result {
	b.T.Helper()
	b.clock.SetTime(b.clock.Now().Add(d))
	result, err := b.reconciler.Reconcile(b.T.Context(), reconcile.Request{})
	apitest.Must(b.T, err)
	return result
}

func (b *eventBench) property(name, value string) *unstructured.Unstructured {
	b.T.Helper()
	p := spoketest.Property("v1alpha1", name, value, nil)
	b.MustCreate(p)
	return p
}

// events returns those about a property, as "reason note".
func (b *eventBench) events(of client.Object) []string {
	b.T.Helper()
	list := &eventsv1.EventList{}
	b.MustList(list, client.InNamespace("default"))
	var texts []string
	for _, event := range list.Items {
		if event.Regarding.UID == of.GetUID() {
			texts = append(texts, event.Reason+" "+event.Note)
		}
	}
	slices.Sort(texts)
	return texts
}

func (b *eventBench) wantEvents(what string, of client.Object, want ...string) {
	b.T.Helper()
	if diff := cmp.Diff(want, b.events(of)); diff != "" {
		b.T.Errorf("%s: events (-want +got):\n%s", what, diff)
	}
}

const tooLong = "ValueTooLong Not published to the hub: its value is longer than 1024 bytes. Shorten spec.value."

func TestOneEventForEachPropertyAndReason(t *testing.T) {
	b := newEventBench(t)
	long := b.property(strings.Repeat("l", 63)+"."+strings.Repeat("o", 63)+"."+strings.Repeat("n", 63)+".example.com",
		strings.Repeat("x", 2000))
	if result := b.pass(0); result.RequeueAfter <= 0 || result.RequeueAfter > 50*time.Minute {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	b.wantEvents("a long value", long, tooLong)

	b.pass(time.Second)
	b.restart()
	b.pass(time.Second)
	b.wantEvents("later, and after a restart", long, tooLong)

	b.MustMerge(long, `{"spec":{"value":"v"}}`)
	b.pass(time.Second)
	b.pass(lateTime)
	late := "ClaimNotWritten Not published to the hub: " + whyNotWritten + "."
	b.wantEvents("another reason", long, late, tooLong)

	b.MustDelete(long)
	attempts := b.attempts
	b.pass(2 * time.Hour)
	if b.attempts != attempts {
		t.Errorf("%d events about a property that is gone", b.attempts-attempts)
	}
}

func TestAnEventIsRepeatedOnlyWhileItHolds(t *testing.T) {
	b := newEventBench(t)
	p := b.property("p.example.com", strings.Repeat("x", 2000))
	b.pass(0)
	b.pass(time.Hour)
	b.wantEvents("after an hour", p, tooLong, tooLong)
	b.MustMerge(p, `{"metadata":{"labels":{"open-cluster-management.io/spoke-only":""}}}`)
	b.pass(time.Hour)
	b.wantEvents("after its owner kept it on the spoke", p, tooLong, tooLong)
}

// A spoke may refuse events, as with the manifests of revision 1.
func TestRefusedEventsDisturbNothing(t *testing.T) {
	events := schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	for name, tc := range map[string]struct {
		refusal  error
		attempts int // with two properties
		again    time.Duration
	}{
		"forbidden":     {apierrors.NewForbidden(events, "", fmt.Errorf("no rights")), 1, 10 * time.Minute},
		"not reachable": {fmt.Errorf("connection refused"), 1, time.Minute},
		"invalid": {apierrors.NewInvalid(schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}, "", nil), 2,
			50 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEventBench(t)
			b.refusal = tc.refusal
			p := b.property("p.example.com", strings.Repeat("x", 2000))
			q := b.property("q.example.com", strings.Repeat("x", 2000))
			result := b.pass(0)
			b.pass(time.Second)
			if b.attempts != tc.attempts || result.RequeueAfter != tc.again {
				t.Errorf("%d attempts, and another after %s; want %d after %s",
					b.attempts, result.RequeueAfter, tc.attempts, tc.again)
			}
			b.refusal = nil
			b.pass(tc.again)
			b.wantEvents("once they are admitted", p, tooLong)
			b.wantEvents("once they are admitted", q, tooLong)
		})
	}
}
