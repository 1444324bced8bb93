package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func check(t *testing.T, when string, m *Metrics, name string, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, apitest.Shown(t, m, prefix+name)); diff != "" {
		t.Errorf("%s, %s (-want +got):\n%s", when, name, diff)
	}
}

func TestPairsAreCountedByState(t *testing.T) {
	m := New(Options{})
	synced, failed, withheld := Pair{State: "Synced"}, Pair{State: "WriteFailed"}, Pair{Withheld: "NotPlaced"}
	m.MovePair("a", Pair{}, synced)
	m.MovePair("b", Pair{}, synced)
	m.MovePair("b", synced, failed)
	m.MovePair("b", failed, failed)
	m.MovePair("c", Pair{}, withheld)
	check(t, "three pairs", m, "profiles", map[string]float64{"Synced": 1, "WriteFailed": 1})
	check(t, "three pairs", m, "withheld", map[string]float64{"NotPlaced": 1})
	m.MovePair("c", withheld, synced)
	m.MovePair("b", failed, Pair{})
	check(t, "later", m, "profiles", map[string]float64{"Synced": 2})
	check(t, "later", m, "withheld", map[string]float64{})
}

// TestNamespaces: with a namespace label, a namespace with nothing left to count has no
// series.
func TestNamespaces(t *testing.T) {
	m := New(Options{ByNamespace: true})
	m.MovePair("a", Pair{}, Pair{State: "Synced"})
	m.MovePair("b", Pair{}, Pair{State: "Synced"})
	m.MovePair("b", Pair{State: "Synced"}, Pair{State: "WriteFailed"})
	check(t, "two namespaces", m, "profiles", map[string]float64{"a Synced": 1, "b WriteFailed": 1})
	m.MovePair("b", Pair{State: "WriteFailed"}, Pair{})
	for _, family := range apitest.Gather(t, m) {
		if family.GetName() == "cluster_inventory_profiles" && len(family.GetMetric()) != 1 {
			t.Errorf("series %v, want that of namespace a", family.GetMetric())
		}
	}
}

// TestStatesAreExportedFromTheStart: a rate or a sum needs the zero.
func TestStatesAreExportedFromTheStart(t *testing.T) {
	series := map[string]int{}
	for _, family := range apitest.Gather(t, New(Options{})) {
		series[strings.TrimPrefix(family.GetName(), "cluster_inventory_")] = len(family.GetMetric())
	}
	want := map[string]int{
		"profiles": 6, "profiles_held_back": 1, "withheld": 9, "properties_rejected": 6,
		"credentials": 12, "profile_delay_seconds": 1, "build_info": 1,
	}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Errorf("series of nothing (-want +got):\n%s", diff)
	}
}

func TestRejectedClaims(t *testing.T) {
	m := New(Options{})
	m.RejectClaims("Empty", 3)
	m.RejectClaims("Limit", 20)
	m.RejectClaims("Empty", -1)
	m.RejectClaims("whatever a spoke sends", 7)
	check(t, "claims", m, "properties_rejected", map[string]float64{"Empty": 2, "Limit": 20})
}

func TestFirstTokenExpiry(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := testingclock.NewFakePassiveClock(now)
	m := New(Options{Clock: clock})
	account := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "c", Name: name} }
	check(t, "without tokens", m, "credential_expiry_seconds", map[string]float64{})
	for i, minutes := range []time.Duration{50, 30, 40, 20, 60} {
		m.TokenEnds(account(fmt.Sprint(i)), now.Add(minutes*time.Minute))
	}
	check(t, "five tokens", m, "credential_expiry_seconds", map[string]float64{"": 1200})
	m.TokenEnds(account("3"), now.Add(2*time.Hour))
	check(t, "the first was renewed", m, "credential_expiry_seconds", map[string]float64{"": 1800})
	m.TokenEnds(account("1"), time.Time{})
	m.TokenEnds(account("1"), time.Time{})
	clock.SetTime(now.Add(10 * time.Minute))
	check(t, "the next is not copied any more", m, "credential_expiry_seconds", map[string]float64{"": 1800})
	m.TokenEnds(account("4"), now.Add(time.Minute))
	check(t, "one has ended", m, "credential_expiry_seconds", map[string]float64{"": -540})
	for i := range 5 {
		m.TokenEnds(account(fmt.Sprint(i)), time.Time{})
	}
	check(t, "in the end", m, "credential_expiry_seconds", map[string]float64{})
}

func TestDelayFromAChangeToTheWrite(t *testing.T) {
	type step struct {
		after   time.Duration
		do      func(*Metrics)
		count   float64
		seconds float64
	}
	change := func(version string) func(*Metrics) {
		return func(m *Metrics) { m.ClusterChanged("c", version) }
	}
	served := func(namespace, version string, patched bool) func(*Metrics) {
		return func(m *Metrics) {
			m.ProfileServed(types.NamespacedName{Namespace: namespace, Name: "c"}, version, patched)
		}
	}
	tests := map[string][]step{
		"a write in each namespace": {
			{do: change("5")},
			{after: time.Second, do: served("a", "5", true), count: 1, seconds: 1},
			{after: time.Second, do: served("b", "6", true), count: 2, seconds: 3},
		},
		"a second write in a namespace has another reason": {
			{do: change("5")},
			{after: time.Second, do: served("a", "5", true), count: 1, seconds: 1},
			{after: time.Second, do: served("a", "5", true), count: 1, seconds: 1},
		},
		"so has one after a look at the profile that changed nothing": {
			{do: change("5")},
			{after: time.Second, do: served("a", "5", false)},
			{after: time.Second, do: served("a", "5", true)},
		},
		"a write of what was there before the change is not its": {
			{do: change("5")},
			{after: time.Second, do: served("a", "4", true)},
			{after: time.Second, do: served("a", "5", true), count: 1, seconds: 2},
		},
		"a second change before the first is served does not make it younger": {
			{do: change("5")},
			{after: 3 * time.Second, do: change("6")},
			{after: time.Second, do: served("a", "6", true), count: 1, seconds: 4},
		},
		"each of two changes is served": {
			{do: change("5")},
			{after: time.Second, do: served("a", "5", true), count: 1, seconds: 1},
			{after: time.Second, do: change("6"), count: 1, seconds: 1},
			{after: time.Second, do: served("a", "6", true), count: 2, seconds: 2},
		},
		"a write long after it": {
			{do: change("5")},
			{after: 11 * time.Minute, do: served("a", "5", true)},
		},
		"without a change": {
			{do: served("a", "5", true)},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
			m := New(Options{Clock: clock})
			for i, step := range steps {
				clock.SetTime(clock.Now().Add(step.after))
				step.do(m)
				want := map[string]float64{"count": step.count, "sum": step.seconds}
				check(t, fmt.Sprint("step ", i), m, "profile_delay_seconds", want)
			}
		})
	}
}

// TestOldChangesLeaveNoMemory: not even those of clusters that change all the time.
func TestOldChangesLeaveNoMemory(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	m := New(Options{Clock: clock})
	for i := range 100 {
		clock.SetTime(clock.Now().Add(time.Minute))
		m.ClusterChanged(fmt.Sprint("once", i), "1")
		m.ClusterChanged("often", fmt.Sprint(i))
	}
	if clusters, changes := len(m.changes.clusters), len(m.changes.order); clusters > 12 || changes > 22 {
		t.Errorf("%d clusters and %d changes are remembered", clusters, changes)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	m.ClusterChanged("last", "1")
	if clusters, changes := len(m.changes.clusters), len(m.changes.order); clusters != 1 || changes != 1 {
		t.Errorf("after an hour: %d clusters and %d changes are remembered", clusters, changes)
	}
}

func TestUpstreamIsInOneMode(t *testing.T) {
	m := New(Options{})
	m.Upstream(WriterRegistration)(false, true)
	m.Upstream(WriterRegistration)(false, false)
	m.Upstream(WriterClusterProxy)(true, false)
	check(t, "two writers", m, "upstream_mode", map[string]float64{"Off registration": 1, "On cluster-proxy": 1})

	// Also while another goroutine changes the mode.
	done := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
				m.Upstream(WriterClusterProxy)(n%3 == 0, n%3 == 1)
			}
		}
	})
	for range 20 {
		for _, family := range apitest.Gather(t, m) {
			if family.GetName() != "cluster_inventory_upstream_mode" {
				continue
			}
			present := 0.
			for _, metric := range family.GetMetric() {
				present += metric.GetGauge().GetValue()
			}
			if series := len(family.GetMetric()); present != 2 || series != 6 {
				t.Errorf("two writers are in %v modes, shown by %d series; want 2 and 6", present, series)
			}
		}
	}
	close(done)
	changing.Wait()
}

// answer answers every request in the same way.
type answer struct {
	code int
	body string
	err  error
}

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func TestWrites(t *testing.T) {
	const profiles = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/team/clusterprofiles"
	denial := `{"kind":"Status","message":"secrets \"c1-a\" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'a' ` +
		`denied request: no"}` + strings.Repeat(" ", 1<<20)
	tests := map[string]struct {
		method, path string
		answer       answer
		want         string
	}{
		"a creation": {http.MethodPost, profiles, answer{code: 201}, "Success clusterprofiles create"},
		"a patch":    {http.MethodPatch, profiles + "/c", answer{code: 200}, "Success clusterprofiles patch"},
		"of a status": {http.MethodPatch, profiles + "/c/status",
			answer{code: 409}, "Conflict clusterprofiles/status patch"},
		"a deletion": {http.MethodDelete, profiles + "/c", answer{code: 404}, "Refused clusterprofiles delete"},
		"a quota":    {http.MethodPost, "/api/v1/namespaces/a/secrets", answer{code: 403}, "Refused secrets create"},
		"a denial by a policy": {http.MethodPost, "/api/v1/namespaces/a/secrets", answer{code: 422, body: denial},
			"Denied secrets create"},
		"a success that quotes one": {http.MethodPost, "/api/v1/namespaces/a/secrets", answer{code: 201, body: denial},
			"Success secrets create"},
		"a slow server":    {http.MethodPost, "/api/v1/namespaces/a/secrets", answer{code: 429}, "Failed secrets create"},
		"a broken webhook": {http.MethodPost, "/api/v1/namespaces/a/secrets", answer{code: 500}, "Failed secrets create"},
		"no answer": {http.MethodPost, "/api/v1/namespaces/a/secrets",
			answer{err: errors.New("gone")}, "Failed secrets create"},
		"of no namespace": {http.MethodPut, "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval",
			answer{code: 200}, "Success certificatesigningrequests/approval update"},
		"behind a prefix":   {http.MethodPost, "/hub" + profiles, answer{code: 201}, "Success clusterprofiles create"},
		"of something else": {http.MethodPost, "/apis/a/v1/namespaces/n/tenants", answer{code: 201}, "Success other create"},
		"of a namespace":    {http.MethodPatch, "/api/v1/namespaces/secrets", answer{code: 200}, "Success other patch"},
		"named like another": {http.MethodPatch, "/api/v1/namespaces/n/pods/secrets",
			answer{code: 200}, "Success other patch"},
		"nowhere":            {http.MethodPost, "/", answer{code: 404}, "Refused other create"},
		"an unfinished path": {http.MethodPost, "/apis", answer{code: 404}, "Refused other create"},
		"a read":             {method: http.MethodGet, path: profiles, answer: answer{code: 200}},
		"a dry run":          {method: http.MethodPost, path: profiles + "?dryRun=All", answer: answer{code: 403, body: denial}},
		"a review": {method: http.MethodPost,
			path: "/apis/authentication.k8s.io/v1/tokenreviews", answer: answer{code: 201}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := New(Options{})
			cfg := &rest.Config{Host: "https://hub.example.com"}
			cfg.Wrap(func(http.RoundTripper) http.RoundTripper { return test.answer })
			client, err := rest.HTTPClientFor(m.CountWrites(cfg))
			apitest.Must(t, err)
			req, err := http.NewRequestWithContext(context.Background(), test.method, cfg.Host+test.path, http.NoBody)
			apitest.Must(t, err)
			resp, err := client.Do(req)
			if (err != nil) != (test.answer.err != nil) {
				t.Fatal(err)
			}
			if resp != nil {
				body, err := io.ReadAll(resp.Body)
				if apitest.Must(t, err); string(body) != test.answer.body {
					t.Errorf("the client reads %q", body)
				}
				_ = resp.Body.Close()
			}
			want := map[string]float64{}
			if test.want != "" {
				want[test.want] = 1
			}
			check(t, "one request", m, "writes_total", want)
		})
	}
}

// documented is a row of the table in docs/metrics.md.
type documented struct {
	Type   string
	Labels []string
}

// TestEveryMetricIsDocumented compares what is served with docs/metrics.md, where people
// look up what they may rely on.
func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	apitest.Must(t, err)
	want := map[string]documented{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 {
			continue
		}
		name := strings.Trim(cells[1], " `")
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, prefix+"agent_") {
			continue
		}
		row := documented{Type: strings.TrimSpace(cells[2])}
		for label := range strings.SplitSeq(cells[3], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				row.Labels = append(row.Labels, label)
			}
		}
		slices.Sort(row.Labels)
		want[name] = row
	}

	m := New(Options{ByNamespace: true})
	m.MovePair("a", Pair{}, Pair{State: "Synced", Withheld: "NotPlaced"})
	m.TokenEnds(types.NamespacedName{Name: "a"}, time.Now())
	m.Upstream(WriterRegistration)(true, false)
	m.PolicyEnforced("a", true)
	m.CountCondition("Degraded", "True", "WriteFailed", 1)
	m.CountAgent("r", "Completed", 1)
	m.writes.WithLabelValues("secrets", "create", outcomeSuccess).Inc()
	got := map[string]documented{}
	for _, family := range apitest.Gather(t, m) {
		row := documented{Type: strings.ToLower(family.GetType().String())}
		for _, label := range family.GetMetric()[0].GetLabel() {
			row.Labels = append(row.Labels, label.GetName())
		}
		slices.Sort(row.Labels)
		got[family.GetName()] = row
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-in docs/metrics.md +served):\n%s", diff)
	}
	values := slices.Concat(
		profileStates(), withheldReasons(), RejectionReasons(), credentialStates(), writtenResources,
		[]string{outcomeSuccess, outcomeConflict, outcomeDenied, outcomeRefused, outcomeFailed},
		[]string{WriterRegistration, WriterClusterProxy, WriterServiceAccount, otherResource, Other, None},
	)
	values = append(values, modes()...)
	for _, verb := range writeVerbs {
		values = append(values, verb)
	}
	for _, value := range values {
		if !strings.Contains(string(text), "`"+value+"`") {
			t.Errorf("docs/metrics.md does not explain the value %s", value)
		}
	}
}

// A reason that is missing in the list would count as Other.
func TestEveryReasonOfAConditionCounts(t *testing.T) {
	source, err := os.ReadFile("../../contract/conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`(?m)^(?:const|\t)\s*Reason\w+\s*=\s*"(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(constants) < 30 {
		t.Fatalf("%d reasons", len(constants))
	}
	for _, constant := range constants {
		if !slices.Contains(Reasons()["Degraded"], constant[1]) {
			t.Errorf("no condition counts the reason %s", constant[1])
		}
	}
}
