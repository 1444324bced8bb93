package report

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
)

func TestAccountCountsUnderItsFirstReason(t *testing.T) {
	several := []Problem{{Reason: "CopyFailed"}, {Reason: "ForeignSecret"}, {Reason: "CopyFailed"}}
	for _, test := range []struct {
		problems []Problem
		known    bool
		want     string
	}{
		{known: true, want: "Copied"},
		{problems: several, known: true, want: "ForeignSecret"},
		{problems: several, want: ""},
	} {
		if got := countedAs(test.problems, test.known); got != test.want {
			t.Errorf("%v (known: %t) counts as %q, want %q", test.problems, test.known, got, test.want)
		}
	}
	for _, reason := range order {
		if got := countedAs([]Problem{{Reason: reason}}, true); got != reason {
			t.Errorf("%s counts as %s", reason, got)
		}
	}
}

// Every token of a large fleet is refused to one namespace, the manager restarts, and then
// all are copied.
func TestTenThousandRefusedTokensAreOneEvent(t *testing.T) {
	const clusters = 10_000
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set", UID: "u"}}
	hub := fake.NewClientBuilder().WithScheme(ocmtest.Scheme()).WithObjects(binding).Build()
	now := testingclock.NewFakePassiveClock(time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC))
	refused := NewOutcomes(func(string) {}, func(string) {}, metrics.New(metrics.Options{}))
	account := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: fmt.Sprintf("c%05d", i), Name: "reader"}
	}
	for i := range clusters {
		why := fmt.Sprintf("Account reader is not copied: its token has expired at %d.", i)
		refused.Set(account(i), Outcome{ForConsumers: map[string][]notices.Problem{"team": {{
			Cluster: account(i).Namespace, Reason: "InvalidSource", Why: why, HasProfile: true, Bindings: []string{"set"},
		}}}})
	}
	reports := func(when string, events int) {
		t.Helper()
		r, team := notices.NewReporter(hub, hub, now, "hub.credentials", "Copy"), types.NamespacedName{Namespace: "team"}
		_, err := r.Report(t.Context(), team, notices.Desired(refused.In("team")))
		apitest.Must(t, err)
		list := &eventsv1.EventList{}
		apitest.Must(t, hub.List(t.Context(), list))
		if len(list.Items) != events {
			t.Fatalf("%s: %d events, want %d", when, len(list.Items), events)
		}
		for _, event := range list.Items {
			if len(event.Note) > 1024 || event.Regarding.Name != "set" {
				t.Errorf("%d bytes about %s: %s", len(event.Note), event.Regarding.Name, event.Note)
			}
		}
	}
	reports("at first", 1)
	now.SetTime(now.Now().Add(time.Minute))
	reports("after a restart", 1)
	for i := range clusters {
		refused.Set(account(i), Outcome{})
	}
	reports("when all are copied", 1)
	for i := range clusters {
		refused.Forget(account(i))
	}
	if len(refused.clusters.All()) > 0 {
		t.Error("what is over leaves memory")
	}
}

// Accounts of one cluster are reconciled at the same time, and none replaces another's outcome.
func TestSimultaneousOutcomesOfOneCluster(t *testing.T) {
	const accounts = 100
	o := NewOutcomes(func(string) {}, func(string) {}, metrics.New(metrics.Options{}))
	var group sync.WaitGroup
	for i := range accounts {
		group.Go(func() {
			account := types.NamespacedName{Namespace: "c", Name: fmt.Sprint(i)}
			o.Set(account, Outcome{Problems: []Problem{{Reason: "CopyFailed"}}})
			o.Set(account, Outcome{ForConsumers: map[string][]notices.Problem{"team": {{Cluster: "c"}}}})
		})
	}
	group.Wait()
	if known, problems := len(o.Of("c")), len(o.In("team")); known != accounts || problems != accounts {
		t.Errorf("%d outcomes are known and %d reported, want %d", known, problems, accounts)
	}
}

func TestWhatHasPassedIsNotReported(t *testing.T) {
	account := types.NamespacedName{Namespace: "c", Name: "reader"}
	unknown, foreign := Problem{Reason: "SelectionUnknown"}, Problem{Reason: "ForeignSecret", Namespace: "team"}
	for name, test := range map[string]struct {
		before []Problem
		want   map[string][]Problem
	}{
		"it was all":        {[]Problem{unknown}, map[string][]Problem{}},
		"others stay":       {[]Problem{unknown, foreign}, map[string][]Problem{"reader": {foreign}}},
		"it was none":       {[]Problem{foreign}, map[string][]Problem{"reader": {foreign}}},
		"nothing was wrong": {nil, map[string][]Problem{"reader": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOutcomes(func(string) {}, func(string) {}, metrics.New(metrics.Options{}))
			o.Set(account, Outcome{Problems: test.before})
			o.Over(account, "SelectionUnknown")
			if diff := cmp.Diff(test.want, o.Of("c")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	o := NewOutcomes(func(string) {}, func(string) {}, metrics.New(metrics.Options{}))
	o.Over(account, "SelectionUnknown")
	if len(o.Of("c")) > 0 {
		t.Error("an unknown account is known")
	}
}
