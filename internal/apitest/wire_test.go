package apitest

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

const (
	namespaces = "/api/v1/namespaces"
	reviews    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// send sends requests given as "METHOD path" and returns the statuses.
func send(t *testing.T, cfg *rest.Config, requests ...string) []int {
	t.Helper()
	c, err := rest.HTTPClientFor(cfg)
	Must(t, err)
	statuses := make([]int, 0, len(requests))
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, cfg.Host+path, http.NoBody)
		Must(t, err)
		req.Header.Set("User-Agent", "tester")
		resp, err := c.Do(req)
		Must(t, err)
		Must(t, resp.Body.Close())
		statuses = append(statuses, resp.StatusCode)
	}
	return statuses
}

// upstream responds to everything with 200, and to a watch with one line at once and a
// second one when told.
func upstream(t *testing.T, second <-chan struct{}) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			return
		}
		for _, line := range []string{"first\n", "second\n"} {
			_, _ = w.Write([]byte(line))
			w.(http.Flusher).Flush()
			select {
			case <-second:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestReviewsAreNotWrites(t *testing.T) {
	wire := &Wire{}
	send(t, wire.Tap(upstream(t, nil)), "GET "+namespaces, "POST "+reviews, "POST "+namespaces)
	if diff := cmp.Diff([]string{"POST namespaces"}, wire.Sent()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	calls := wire.Calls()
	if len(calls) != 3 || calls[0].UserAgent != "tester" || !calls[2].Mentions("namespaces") || calls[2].Mentions("pods") {
		t.Errorf("calls %+v", calls)
	}
}

func TestQuiet(t *testing.T) {
	wire := &Wire{}
	cfg := wire.Tap(upstream(t, nil))
	quiet := func(d time.Duration) string {
		return run(t, func(tb testing.TB) { wire.Quiet(tb, d, "at rest") })
	}
	send(t, cfg, "GET "+namespaces)
	if reason := quiet(short); reason != "" {
		t.Errorf("a read counts as a write: %s", reason)
	}
	wire.wrote = nil // the last waiter's
	const found = "writes at rest: [POST /api/v1/namespaces]"
	broken := make(chan string)
	go func() { broken <- quiet(long) }()
	waitForListener(t, wire)
	send(t, cfg, "POST "+namespaces)
	if reason := <-broken; reason != found {
		t.Errorf("a write while it waits: %q", reason)
	}
	if reason := quiet(long); reason != found {
		t.Errorf("a write before it waits: %q", reason)
	}
	wire.Reset()
	if reason := quiet(short); reason != "" {
		t.Errorf("a write that was reset: %s", reason)
	}
}

func TestSettle(t *testing.T) {
	wire := &Wire{}
	cfg := wire.Tap(upstream(t, nil))
	send(t, cfg, "POST "+namespaces)
	if reason := run(t, func(tb testing.TB) { wire.Settle(tb, long, short) }); reason != "" {
		t.Errorf("nothing is written any more: %s", reason)
	}
}

func TestSettleGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire, restless := &Wire{}, make(chan string)
		go func() { restless <- run(t, func(tb testing.TB) { wire.Settle(tb, 4*short, long) }) }()
		synctest.Wait() // until it waits for a write
		wire.record(Call{Method: http.MethodDelete, Resource: "namespaces", Path: namespaces})
		if reason := <-restless; reason != "still writing after 200ms: [DELETE /api/v1/namespaces]" {
			t.Errorf("a write resets the wait: %q", reason)
		}
	})
}

// waitForListener waits until a test waits for the next write.
func waitForListener(t *testing.T, wire *Wire) {
	t.Helper()
	Eventually(t, long, "a test waits for a write", func() string {
		wire.mu.Lock()
		defer wire.mu.Unlock()
		if wire.wrote == nil {
			return "no test does"
		}
		return ""
	})
}

func TestProxyRecordsFailsAndStreams(t *testing.T) {
	wire, second := &Wire{}, make(chan struct{})
	cfg := wire.Proxy(t, upstream(t, second))
	wire.FailNthWrite(1, Fault{Status: http.StatusConflict, Reason: "Conflict"})
	got := send(t, cfg, "GET "+namespaces, "POST "+namespaces, "POST "+namespaces)
	if diff := cmp.Diff([]int{http.StatusOK, http.StatusConflict, http.StatusOK}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"POST namespaces", "POST namespaces"}, wire.Sent()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+namespaces+"?watch=true", http.NoBody)
	Must(t, err)
	httpClient, err := rest.HTTPClientFor(cfg)
	Must(t, err)
	resp, err := httpClient.Do(req)
	Must(t, err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != "first" {
		t.Errorf("first line %q, %v", lines.Text(), lines.Err())
	}
	close(second)
	if !lines.Scan() || lines.Text() != "second" {
		t.Errorf("second line %q, %v", lines.Text(), lines.Err())
	}
	if calls := wire.Calls(); !calls[len(calls)-1].IsWatch() {
		t.Errorf("the watch is not recorded: %v", calls)
	}
}
