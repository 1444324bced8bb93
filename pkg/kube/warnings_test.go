package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// warningLog collects the warnings that are logged.
type warningLog struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (l *warningLog) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, text)
}

func TestAWarningIsLoggedOnceAnHour(t *testing.T) {
	logged, now := &warningLog{}, testingclock.NewFakePassiveClock(time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC))
	warn := newRareWarnings(logged, now)
	expect := func(want ...string) {
		t.Helper()
		slices.Sort(logged.texts)
		if !slices.Equal(logged.texts, want) {
			t.Errorf("logged %q, want %q", logged.texts, want)
		}
		logged.texts = nil
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			warn.HandleWarningHeaderWithContext(t.Context(), 299, "-", "v1alpha1 is deprecated")
			warn.HandleWarningHeaderWithContext(t.Context(), 299, "-", "another")
		})
	}
	all.Wait()
	expect("another", "v1alpha1 is deprecated")
	now.SetTime(now.Now().Add(59 * time.Minute))
	warn.HandleWarningHeaderWithContext(t.Context(), 299, "-", "another")
	expect()
	now.SetTime(now.Now().Add(time.Minute + time.Second))
	warn.HandleWarningHeaderWithContext(t.Context(), 299, "-", "another")
	expect("another")

	// A webhook that answers with ever different warnings fills no memory.
	for n := range 1000 {
		warn.HandleWarningHeaderWithContext(t.Context(), 299, "-", fmt.Sprint(n, "\n", strings.Repeat("x", 5000)))
	}
	if len(logged.texts) != 1000 || len(logged.texts[0]) > 1024 || strings.Contains(logged.texts[0], "\n") {
		t.Errorf("%d warnings, the first of %d bytes", len(logged.texts), len(logged.texts[0]))
	}
	if kept := len(warn.passed.Keys()); kept > 256 {
		t.Errorf("%d warnings are remembered", kept)
	}
}

// Clients of every configuration that programs read from a kubeconfig share one log.
func TestClientsShareTheLogOfWarnings(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Warning", `299 - "the API of this test is deprecated"`)
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprint(rw, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`,
		server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	logged, before := &warningLog{}, warnings.next
	warnings.next = logged
	t.Cleanup(func() { warnings.next = before })
	for range 3 {
		cfg, err := Config(file)
		if err != nil {
			t.Fatal(err)
		}
		cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		client, err := rest.UnversionedRESTClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := client.Get().AbsPath("/x").Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"the API of this test is deprecated"}; !slices.Equal(logged.texts, want) {
		t.Errorf("logged %q, want %q", logged.texts, want)
	}
}
