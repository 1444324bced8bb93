package notices

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestObjectsThatAProblemIsReportedOn(t *testing.T) {
	problem := func(cluster, reason, why string) Problem {
		return Problem{Cluster: cluster, Reason: reason, Why: why, HasProfile: true, Bindings: []string{"t", "s"}}
	}
	without := func(p Problem) Problem {
		p.HasProfile = false
		return p
	}
	many := func(n int, reason string) (list []Problem) {
		for i := range n {
			list = append(list, problem(fmt.Sprintf("c%02d", i), reason, "One."))
		}
		return list
	}
	var own []Notice
	for i := range 10 {
		own = append(own, Notice{Subject{Profile, fmt.Sprintf("c%02d", i)}, "R", "Warning", "One."})
	}
	unseen := without(problem("a", "R", "One."))
	unseen.Bindings = nil
	for name, test := range map[string]struct {
		problems []Problem
		want     []Notice
	}{
		"nothing is wrong": {},
		"the profile has it": {
			problems: []Problem{problem("a", "R", "One.")},
			want:     []Notice{{Subject{Profile, "a"}, "R", "Warning", "One."}},
		},
		"without a profile, one of the set bindings": {
			problems: []Problem{without(problem("a", "R", "One.")), without(problem("b", "R", "One.")), without(problem("c", "R", "Another."))},
			want:     []Notice{{Subject{Binding, "s"}, "R", "Warning", "c: Another. a, b: One."}},
		},
		"no namespace sees the cluster": {problems: []Problem{unseen}},
		"two accounts of one cluster, and one twice": {
			problems: []Problem{problem("a", "R", "Two."), problem("a", "R", "One."), problem("a", "R", "One.")},
			want:     []Notice{{Subject{Profile, "a"}, "R", "Warning", "One. Two."}},
		},
		"two reasons": {
			problems: []Problem{problem("a", "S", "Two."), problem("a", "R", "One.")},
			want:     []Notice{{Subject{Profile, "a"}, "R", "Warning", "One."}, {Subject{Profile, "a"}, "S", "Warning", "Two."}},
		},
		"as many as have their own": {problems: many(10, "R"), want: own},
		"too many, and one for another reason": {
			problems: append(many(11, "R"), problem("a", "S", "Two.")),
			want: []Notice{
				{Subject{Binding, "s"}, "R", "Warning", "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 1 more: One."},
				{Subject{Profile, "a"}, "S", "Warning", "Two."},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Desired(test.problems)); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("no text is longer than an event's", func(t *testing.T) {
		var problems []Problem
		for i := range 100 {
			problems = append(problems, without(problem(fmt.Sprintf("c%02d", i), "R", strings.Repeat("é", 50)+fmt.Sprint(i))))
		}
		got := Desired(append(problems, problem("a", "S", strings.Repeat("é", 2000))))
		for _, notice := range got {
			if len(notice.Text) > 1024 || !strings.HasSuffix(notice.Text, "...") {
				t.Errorf("a text of %d bytes: %s", len(notice.Text), notice.Text)
			}
		}
		if len(got) != 2 {
			t.Errorf("%d notices", len(got))
		}
	})
}

// hub is one that keeps events, and its clock.
type hub struct {
	client.Client
	t    *testing.T
	time *testingclock.FakePassiveClock
	fail error // of writes

	failing string // which notes contain, if not all fail
}

func newHub(t *testing.T, objs ...client.Object) *hub {
	t.Helper()
	h := &hub{t: t, time: testingclock.NewFakePassiveClock(time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC))}
	h.Client = fake.NewClientBuilder().WithScheme(ocmtest.Scheme()).WithObjects(objs...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if event, ok := obj.(*eventsv1.Event); ok && h.fail != nil && strings.Contains(event.Note, h.failing) {
					return h.fail
				}
				return c.Create(ctx, obj, opts...)
			},
		}).Build()
	return h
}

func (h *hub) later(d time.Duration) { h.time.SetTime(h.time.Now().Add(d)) }

func (h *hub) reporter() *Reporter { return NewReporter(h, h, h.time, "hub.test", "Test") }

// events are the notes of the events there are.
func (h *hub) events() []string {
	h.t.Helper()
	list := &eventsv1.EventList{}
	apitest.Must(h.t, h.List(h.t.Context(), list))
	notes := make([]string, 0, len(list.Items))
	for _, event := range list.Items {
		notes = append(notes, event.Regarding.Kind+" "+event.Regarding.Name+": "+event.Note)
	}
	return notes
}

// reports has a scope reported, and checks how many events there are then in all, and when it
// is to be reported again.
func (h *hub) reports(r *Reporter, namespace string, events int, again time.Duration, current ...Notice) {
	h.t.Helper()
	got, err := r.Report(h.t.Context(), types.NamespacedName{Namespace: namespace}, current)
	apitest.Must(h.t, err)
	if notes := h.events(); len(notes) != events {
		h.t.Fatalf("there are %d events, want %d: %q", len(notes), events, notes)
	}
	if got != again {
		h.t.Fatalf("again after %s, want %s", got, again)
	}
}

func team(namespace string) []client.Object {
	at := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}
	}
	profile := ocmtest.OurProfile(namespace, "c")
	profile.UID = types.UID(namespace + "profile")
	return []client.Object{
		profile, &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: at("s")}, &clusterv1beta1.Placement{ObjectMeta: at("p")},
	}
}

func TestAnEventIsCreatedWhenThereIsNews(t *testing.T) {
	h := newHub(t, team("team")...)
	r := h.reporter()
	about := Notice{Subject{Profile, "c"}, "R", "Warning", "one"}
	news := about
	news.Text = "two"

	h.reports(r, "team", 0, 0)
	h.reports(r, "team", 1, kube.EventPeriod, about)
	h.reports(r, "team", 1, kube.EventPeriod, about)
	h.later(10 * time.Second)
	h.reports(r, "team", 1, Interval-10*time.Second, news)
	h.later(20 * time.Second)
	h.reports(r, "team", 2, kube.EventPeriod, news)
	h.later(kube.EventPeriod)
	h.reports(r, "team", 3, kube.EventPeriod, news) // it still holds

	// Over, and soon there again: that is news, though the last event says it already.
	h.reports(r, "team", 3, kube.EventPeriod)
	h.reports(r, "team", 3, Interval, news)
	h.later(Interval)
	h.reports(r, "team", 4, kube.EventPeriod, news)
	h.reports(r, "team", 4, kube.EventPeriod)
	h.later(kube.EventPeriod)
	h.reports(r, "team", 4, 0)
	if left := r.scopes.All(); len(left) > 0 {
		t.Errorf("what is over leaves %v", left)
	}

	// What is about other objects, or has another reason, waits for nothing.
	h.reports(r, "team", 5, kube.EventPeriod, about)
	all := []Notice{
		about, {about.Subject, "S", "Warning", "one"},
		{Subject{Binding, "s"}, "R", "Normal", "three"}, {Subject{Placement, "p"}, "R", "Normal", "three"},
	}
	h.reports(r, "team", 8, kube.EventPeriod, all...)
	h.reports(r, "team", 8, kube.EventPeriod, append(all, Notice{Subject{Profile, "gone"}, "R", "Warning", "x"})...)
}

func TestAFailedEventIsTriedAgain(t *testing.T) {
	h := newHub(t, team("team")...)
	r := h.reporter()
	about := Notice{Subject{Profile, "c"}, "R", "Warning", "one"}
	h.fail = errors.New("no")
	if _, err := r.Report(t.Context(), types.NamespacedName{Namespace: "team"}, []Notice{about}); !errors.Is(err, h.fail) {
		t.Errorf("the error is %v", err)
	}
	h.fail = nil
	h.reports(r, "team", 1, kube.EventPeriod, about)
}

// The next leader finds the existing events and adds none.
func TestARefusedEventKeepsNoOthersWaiting(t *testing.T) {
	h := newHub(t, team("team")...)
	h.fail, h.failing = apierrors.NewForbidden(schema.GroupResource{}, "event", nil), "First."
	notice := func(why string) Notice {
		return Desired([]Problem{{Cluster: "c", Reason: "R" + why[:1], Why: why, HasProfile: true, Bindings: []string{"s"}}})[0]
	}
	r := h.reporter()
	h.reports(r, "team", 1, kube.EventPeriod, notice("First."), notice("Second."))
	h.reports(r, "team", 1, kube.EventPeriod, notice("First."), notice("Second."))
	h.fail = nil
	h.later(kube.EventPeriod)
	h.reports(r, "team", 3, kube.EventPeriod, notice("First."), notice("Second."))
}

// A turn cannot be given back, so a scope that does not need it any more keeps it for its next event.
func TestAnAbandonedTurnIsUsed(t *testing.T) {
	var objs []client.Object
	for i := range scopesAtOnce {
		objs = append(objs, team(fmt.Sprintf("team-%d", i))...)
	}
	h := newHub(t, append(objs, team("team")...)...)
	current := Desired([]Problem{{Cluster: "c", Reason: "R", Why: "One.", HasProfile: true, Bindings: []string{"s"}}})
	r := h.reporter()
	for i := range scopesAtOnce {
		h.reports(r, fmt.Sprintf("team-%d", i), i+1, kube.EventPeriod, current...)
	}
	for range 3 {
		h.reports(r, "team", scopesAtOnce, time.Second/scopesPerSecond, current...)
		h.reports(r, "team", scopesAtOnce, time.Second/scopesPerSecond)
	}
	h.later(time.Second)
	h.reports(r, "team", scopesAtOnce, 0)
	if _, known := r.scopes.Load(types.NamespacedName{Namespace: "team"}); known {
		t.Error("a turn that has passed is remembered")
	}
}

func TestARestartCreatesNoEvent(t *testing.T) {
	h := newHub(t, team("team")...)
	about := Notice{Subject{Profile, "c"}, "R", "Warning", "one"}
	h.reports(h.reporter(), "team", 1, kube.EventPeriod, about)
	h.later(time.Minute)
	next := h.reporter()
	again, err := next.Report(t.Context(), types.NamespacedName{Namespace: "team"}, []Notice{about})
	apitest.Must(t, err)
	if events := h.events(); len(events) != 1 || again <= 0 || again >= kube.EventPeriod {
		t.Fatalf("events %q, again after %s: want the one of before, and it repeated before it is forgotten", events, again)
	}
	h.later(again)
	h.reports(next, "team", 2, kube.EventPeriod, about)
	news := about
	news.Text = "two"
	h.reports(h.reporter(), "team", 3, kube.EventPeriod, news)
}

// A hub where everything is wrong: namespaces get their events one after the other, and each
// no more than it takes.
func TestAStartIsNoBurst(t *testing.T) {
	const namespaces, clusters = 100, 10_000
	var objs []client.Object
	for i := range namespaces {
		objs = append(objs, team(fmt.Sprintf("team-%d", i))...)
	}
	h := newHub(t, objs...)
	var problems []Problem
	for i := range clusters {
		problems = append(problems, Problem{
			Cluster: fmt.Sprintf("c%05d", i), Reason: "R", Why: "One.", HasProfile: true, Bindings: []string{"s"},
		})
	}
	current := Desired(problems)
	r := h.reporter()
	pass := func() {
		for i := range namespaces {
			_, err := r.Report(t.Context(), types.NamespacedName{Namespace: fmt.Sprintf("team-%d", i)}, current)
			apitest.Must(t, err)
		}
	}
	pass()
	if events := h.events(); len(events) != scopesAtOnce {
		t.Fatalf("%d events at once", len(events))
	}
	pass()
	if events := h.events(); len(events) != scopesAtOnce {
		t.Fatalf("%d events at once, when asked again", len(events))
	}
	h.later(time.Second + (namespaces-scopesAtOnce)*time.Second/scopesPerSecond)
	pass()
	if events := h.events(); len(events) != namespaces {
		t.Fatalf("%d events for %d namespaces", len(events), namespaces)
	}
}
