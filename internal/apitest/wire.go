package apitest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Call is one request a client sent.
type Call struct {
	Method    string // GET, POST, PATCH, PUT, DELETE
	Resource  string // clusterprofiles, or clusterprofiles/status
	Path      string
	Query     url.Values
	UserAgent string
	Body      string // of writes
}

// IsWrite reports whether the call asks to change something. Reviews, such as
// whether a user may do something, and dry runs are sent like writes but change nothing.
func (c Call) IsWrite() bool {
	return c.Method != http.MethodGet && !strings.HasSuffix(c.Resource, "reviews") && !c.Query.Has("dryRun")
}

// IsWatch reports whether the call opens a watch.
func (c Call) IsWatch() bool { return c.Query.Has("watch") }

// Mentions reports whether the text, such as a name, is in the path or the body.
func (c Call) Mentions(text string) bool {
	return strings.Contains(c.Path, text) || strings.Contains(c.Body, text)
}

// String is the method and the path.
func (c Call) String() string { return c.Method + " " + c.Path }

// Summarize returns the calls as "PATCH clusterprofiles/status", in order.
func Summarize(calls []Call) []string {
	list := make([]string, 0, len(calls))
	for _, call := range calls {
		list = append(list, call.Method+" "+call.Resource)
	}
	return list
}

// Fault is the response to a call instead of the server's. The zero value lets the call
// through.
type Fault struct {
	// Status is the HTTP status of the response, or 0.
	Status int
	// Reason is the machine-readable reason in the response, such as Conflict. Without one, the response
	// is plain text, as from a gateway, or from an API server for what it does not serve.
	Reason string
	// Message is the text in the response.
	Message string
	// Err fails the call without a response.
	Err error
	// AfterServer lets the server handle the call first, so that only the response is lost, or held back.
	AfterServer bool
	// Until holds the call, or its response, back until it is closed.
	Until <-chan struct{}
}

// Wire records the requests of the clients made from its configurations and makes chosen
// calls fail. It is safe for concurrent use.
type Wire struct {
	mu        sync.Mutex
	calls     []Call
	conflicts map[string]int // by resource
	wrote     chan struct{}  // closed, and replaced, at the next write
	fault     func(Call) Fault
}

// Tap returns a copy of cfg whose requests go through the wire.
func (w *Wire) Tap(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tapped{wire: w, next: next} })
	return cfg
}

// Proxy returns a configuration whose requests go through the wire and on to the server as
// the user of cfg. Its own credentials are useless elsewhere, so a program started with it
// in a kubeconfig is recorded, and made to fail, like a client of this process.
func (w *Wire) Proxy(tb testing.TB, cfg *rest.Config) *rest.Config {
	tb.Helper()
	cfg = w.Tap(cfg)
	transport, err := rest.TransportFor(cfg)
	Must(tb, err)
	target, err := url.Parse(cfg.Host)
	Must(tb, err)
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) },
	})
	tb.Cleanup(func() {
		proxy.CloseClientConnections() // watches that a killed program has left
		proxy.Close()
	})
	// The proxy does not ask for a certificate, but programs refuse a kubeconfig without.
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	key, err := x509.MarshalPKCS8PrivateKey(proxy.TLS.Certificates[0].PrivateKey)
	Must(tb, err)
	return &rest.Config{Host: proxy.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: certificate, CertData: certificate, KeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}}
}

// Fail sets the function that decides the fate of each later call; nil lets all
// through.
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
	return writesTo(w.calls, resources...)
}

func writesTo(calls []Call, resources ...string) []Call {
	var writes []Call
	for _, call := range calls {
		if call.IsWrite() && (len(resources) == 0 || slices.Contains(resources, call.Resource)) {
			writes = append(writes, call)
		}
	}
	return writes
}

// Sent summarizes what Writes returns.
func (w *Wire) Sent(resources ...string) []string { return Summarize(w.Writes(resources...)) }

// Quiet ends the test if there is a write while the duration lasts, or was one
// since the last Reset.
func (w *Wire) Quiet(tb testing.TB, duration time.Duration, when string) {
	tb.Helper()
	next, writes := w.next()
	if len(writes) == 0 {
		select {
		case <-next:
		case <-time.After(duration):
			return
		}
	}
	tb.Fatalf("writes %s: %v", when, w.Writes())
}

// Settle waits until nothing has been written for the duration, counted from now,
// and ends the test if that takes longer than the limit.
func (w *Wire) Settle(tb testing.TB, limit, duration time.Duration) {
	tb.Helper()
	_, before := w.next()
	end := time.After(limit)
	for {
		next, _ := w.next()
		select {
		case <-next:
		case <-time.After(duration):
			return
		case <-end:
			tb.Fatalf("still writing after %s: %v", limit, w.Writes()[len(before):])
		}
	}
}

// next returns a channel that is closed at the next write, and the writes so far.
func (w *Wire) next() (<-chan struct{}, []Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrote == nil {
		w.wrote = make(chan struct{})
	}
	return w.wrote, writesTo(w.calls)
}

// Calls returns everything recorded so far, in order.
func (w *Wire) Calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Call(nil), w.calls...)
}

// Conflicts is how many of the requests for a resource the server has refused because of a conflict.
func (w *Wire) Conflicts(resource string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conflicts[resource]
}

// Reset forgets what was recorded.
func (w *Wire) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls, w.conflicts = nil, nil
}

func (w *Wire) record(call Call) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	if call.IsWrite() && w.wrote != nil {
		close(w.wrote)
		w.wrote = nil
	}
	if w.fault == nil {
		return Fault{}
	}
	return w.fault(call)
}

type tapped struct {
	wire *Wire
	next http.RoundTripper
}

// send forwards a request and counts its conflict.
func (t *tapped) send(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusConflict {
		t.wire.mu.Lock()
		defer t.wire.mu.Unlock()
		if t.wire.conflicts == nil {
			t.wire.conflicts = map[string]int{}
		}
		t.wire.conflicts[resourceOf(req.URL.Path)]++
	}
	return resp, err
}

// RoundTrip records the request, and forwards it unless a fault says otherwise.
func (t *tapped) RoundTrip(req *http.Request) (*http.Response, error) {
	call := Call{
		Method: req.Method, Resource: resourceOf(req.URL.Path), Path: req.URL.Path,
		Query: req.URL.Query(), UserAgent: req.UserAgent(),
	}
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
	answers := fault.Status != 0 || fault.Err != nil // instead of the server
	var resp *http.Response
	if fault.AfterServer {
		var err error
		if resp, err = t.send(req); err != nil {
			return nil, err
		}
	}
	if fault.Until != nil {
		select {
		case <-fault.Until:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	switch {
	case !answers && resp == nil:
		return t.send(req)
	case !answers:
		return resp, nil
	case resp != nil:
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
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`,
		f.Reason, f.Message, f.Status)
	form := "application/json"
	if f.Reason == "" {
		body, form = f.Message, "text/plain"
	}
	return &http.Response{
		StatusCode:    f.Status,
		Status:        http.StatusText(f.Status),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": []string{form}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}

// resourceOf extracts the resource, with its subresource, from a request path.
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
