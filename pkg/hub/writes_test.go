package hub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestBoundWrites(t *testing.T) {
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		if r.URL.Path == "/slow-answer" {
			w.(http.Flusher).Flush() // the head is there, the body is not
		}
		if r.URL.Path != "/fast" {
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "answer")
	}))
	t.Cleanup(server.Close)
	send := func(timeout time.Duration, method, path string) (string, error) {
		client, err := rest.HTTPClientFor(boundWrites(&rest.Config{Host: server.URL}, timeout))
		apitest.Must(t, err)
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		apitest.Must(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(resp.Body)
		return string(body), errors.Join(err, resp.Body.Close())
	}
	for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
		for _, path := range []string{"/slow", "/slow-answer"} {
			if _, err := send(time.Millisecond, method, path); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s %s: %v, want the deadline to be exceeded", method, path, err)
			}
		}
		if got, err := send(time.Minute, method, "/fast"); err != nil || got != "answer" {
			t.Errorf("%s: %q, %v", method, got, err)
		}
	}
	time.AfterFunc(20*time.Millisecond, func() { close(released) })
	if got, err := send(time.Millisecond, http.MethodGet, "/slow"); err != nil || got != "answer" {
		t.Errorf("GET: %q, %v; reads take as long as they take", got, err)
	}
}
