package apitest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Call is one request a client sent.
type Call struct {
	Method   string // GET, POST, PATCH, PUT, DELETE
	Resource string // clusterprofiles, or clusterprofiles/status
	Path     string
	Query    url.Values
	Body     string // of writes
}

// IsWrite tells whether the call asks to change something.
func (c Call) IsWrite() bool { return c.Method != http.MethodGet }

// Fault is the answer a call gets instead of the server's. The zero value lets
// the call through.
type Fault struct {
	// Status is the HTTP status to answer with, or 0.
	Status int
	// Reason is the machine-readable reason in the answer, such as Conflict.
	Reason string
	// Message is the text in the answer.
	Message string
	// Err fails the call without an answer.
	Err error
	// AfterServer lets the server do the work first, so that only the answer is
	// lost.
	AfterServer bool
	// Until holds the call back until it is closed.
	Until <-chan struct{}
}

// Wire records what goes through the clients made from its configurations and
// makes chosen calls fail. It is safe for concurrent use.
type Wire struct {
	mu    sync.Mutex
	calls []Call
	fault func(Call) Fault
}

// Tap returns a copy of cfg whose requests go through the wire.
func (w *Wire) Tap(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tapped{wire: w, next: next} })
	return cfg
}

// Fail sets what decides the fate of each later call; nil lets all through.
func (w *Wire) Fail(fault func(Call) Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

// FailNthWrite makes the n-th write from now on, counted from 1, fail with the
// given fault, once.
func (w *Wire) FailNthWrite(n int, fault Fault) {
	var mu sync.Mutex
	w.Fail(func(c Call) Fault {
		if !c.IsWrite() {
			return Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			return fault
		}
		return Fault{}
	})
}

// Writes returns the writes recorded so far to the given resources, or to all
// when none is given, in order.
func (w *Wire) Writes(resources ...string) []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var writes []Call
	for _, call := range w.calls {
		if call.IsWrite() && (len(resources) == 0 || slices.Contains(resources, call.Resource)) {
			writes = append(writes, call)
		}
	}
	return writes
}

// Calls returns everything recorded so far, in order.
func (w *Wire) Calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Call(nil), w.calls...)
}

// Reset forgets what was recorded.
func (w *Wire) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = nil
}

func (w *Wire) record(call Call) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	if w.fault == nil {
		return Fault{}
	}
	return w.fault(call)
}

type tapped struct {
	wire *Wire
	next http.RoundTripper
}

// RoundTrip records the request, and forwards it unless a fault says otherwise.
func (t *tapped) RoundTrip(req *http.Request) (*http.Response, error) {
	call := Call{Method: req.Method, Resource: resourceOf(req.URL.Path), Path: req.URL.Path, Query: req.URL.Query()}
	if req.Body != nil && call.IsWrite() {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
		call.Body = string(body)
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	fault := t.wire.record(call)
	if fault.Until != nil {
		select {
		case <-fault.Until:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if fault.Status == 0 && fault.Err == nil {
		return t.next.RoundTrip(req)
	}
	if fault.AfterServer {
		resp, err := t.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		if err := resp.Body.Close(); err != nil {
			return nil, err
		}
	}
	if fault.Err != nil {
		return nil, fault.Err
	}
	return fault.response(req), nil
}

func (f Fault) response(req *http.Request) *http.Response {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + f.Reason + `","message":"` + f.Message + `","code":` + strconv.Itoa(f.Status) + `}`
	return &http.Response{
		StatusCode:    f.Status,
		Status:        http.StatusText(f.Status),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": []string{"application/json"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}

// resourceOf takes the resource, with its subresource, out of a request path.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return path
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		return ""
	case 1, 2:
		return parts[0]
	default:
		return parts[0] + "/" + parts[2]
	}
}
