package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// answer is what a server says to one request.
type answer struct {
	status int
	err    error
	body   io.ReadCloser
}

// RoundTrip implements http.RoundTripper.
func (a *answer) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	body := a.body
	if body == nil { // it lasts until the client ends it
		reader, writer := io.Pipe()
		context.AfterFunc(req.Context(), func() { _ = writer.CloseWithError(context.Cause(req.Context())) })
		body = reader
	}
	return &http.Response{StatusCode: a.status, Body: body}, nil
}

type brokenBody struct{ error }

func (b brokenBody) Read([]byte) (int, error) { return 0, b.error }

func (brokenBody) Close() error { return nil }

func TestWhichWatchesListAgain(t *testing.T) {
	const (
		resuming = "/watched?watch=true&resourceVersion=7"
		listing  = "/watched?watch=true&resourceVersion=7&sendInitialEvents=true"
		starting = "/watched?watch=true&resourceVersion=0"
	)
	refused := errors.New("connection refused")
	broken := answer{status: 200, body: brokenBody{io.ErrUnexpectedEOF}}
	tests := map[string]struct {
		first  string
		answer answer
		next   string
		want   bool
	}{
		"refused, then resumed":               {resuming, answer{err: refused}, resuming, true},
		"a gateway's error, then resumed":     {resuming, answer{status: 502}, resuming, true},
		"too many requests, then resumed":     {resuming, answer{status: 429}, resuming, true},
		"the connection broke, then resumed":  {resuming, broken, resuming, true},
		"a list's connection broke":           {listing, broken, resuming, true},
		"it ended in time, then resumed":      {resuming, answer{status: 200, body: http.NoBody}, resuming, false},
		"refused, then listed":                {resuming, answer{err: refused}, listing, false},
		"refused, then started again":         {resuming, answer{err: refused}, starting, false},
		"a list was refused, another resumed": {listing, answer{err: refused}, resuming, false},
		"forbidden, then resumed":             {resuming, answer{status: 403}, resuming, false},
		"another request was refused":         {"/watched/one", answer{err: refused}, resuming, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := &test.answer
			transport := &relistAfterOutage{next: server, all: &Outages{}}
			send := func(path string) (*http.Response, error) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
				apitest.Must(t, err)
				return transport.RoundTrip(req)
			}
			if resp, err := send(test.first); err == nil {
				if test.answer.body != nil {
					_, _ = io.ReadAll(resp.Body)
				}
				apitest.Must(t, resp.Body.Close())
			}
			*server = answer{status: 200}
			resp, err := send(test.next) //nolint:bodyclose // it is, below
			apitest.Must(t, err)
			ended := make(chan error, 1)
			go func() {
				_, err := io.ReadAll(resp.Body)
				ended <- err
			}()
			select {
			case err := <-ended:
				if !test.want || !errors.Is(err, errRelist) {
					t.Errorf("the watch ended: %v", err)
				}
			case <-time.After(map[bool]time.Duration{true: apitest.Patience, false: 100 * time.Millisecond}[test.want]):
				if test.want {
					t.Error("the watch goes on")
				}
			}
			apitest.Must(t, resp.Body.Close())
		})
	}
}

// A reflector resumes after errors that mean the end of a connection.
func TestTheErrorMakesAReflectorList(t *testing.T) {
	for _, regular := range []string{"EOF", "connection reset by peer", "use of closed network connection"} {
		if strings.Contains(fmt.Sprint(errRelist), regular) {
			t.Errorf("%q is taken for the end of a connection", errRelist)
		}
	}
}

// A server without WatchList refuses to list by a watch, so the watch after the list looks like
// one that resumes.
func TestOneListPerOutage(t *testing.T) {
	server := &answer{}
	transport := &relistAfterOutage{next: server, all: &Outages{}}
	const listing = "watch=true&resourceVersion=7&sendInitialEvents=true"
	watch := func(query, accept string, says answer) (isCut bool) {
		t.Helper()
		*server = says
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/watched?"+query, nil)
		apitest.Must(t, err)
		req.Header.Set("Accept", accept)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return false
		}
		isCut = resp.Body.(*watchBody).relist != nil
		apitest.Must(t, resp.Body.Close())
		return isCut
	}
	for outage := range 2 {
		for _, step := range []struct {
			what, query, accept string
			answer              answer
			want                bool
		}{
			{"refused", "watch=true&resourceVersion=7", "a", answer{err: errors.New("connection refused")}, false},
			{"resumed", "watch=true&resourceVersion=7", "a", answer{status: 200}, true},
			{"listing refused", listing, "a", answer{status: 422}, false},
			{"resumed in another form", "watch=true&resourceVersion=8", "b", answer{status: 200}, true},
			{"resumed for other objects", "watch=true&resourceVersion=8&labelSelector=c", "a", answer{status: 200}, true},
			{"watched after the list", "watch=true&resourceVersion=8&timeoutSeconds=1", "a", answer{status: 200}, false},
		} {
			if got := watch(step.query, step.accept, step.answer); got != step.want {
				t.Errorf("outage %d, %s: is cut %v", outage+1, step.what, got)
			}
		}
	}
	// The next outage comes between the list and the watch.
	watch(listing, "a", answer{status: 422})
	watch("watch=true&resourceVersion=9", "a", answer{status: 503})
	if !watch("watch=true&resourceVersion=9", "a", answer{status: 200}) {
		t.Error("an outage after the list goes unnoticed")
	}
	// The server is upgraded, and is restored later.
	watch(listing, "a", answer{status: 422})
	watch(listing, "a", answer{status: 200})
	if !watch("watch=true&resourceVersion=9", "a", answer{status: 200}) {
		t.Error("a list by a watch is taken for another one")
	}
}

// What the client ends itself is no outage.
func TestStoppedWatchesAreNoOutage(t *testing.T) {
	server := &answer{status: 200}
	transport := &relistAfterOutage{next: server, all: &Outages{}}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/watched?watch=true&resourceVersion=7", nil)
	apitest.Must(t, err)
	for _, stop := range []func(io.Closer){
		func(body io.Closer) { apitest.Must(t, body.Close()) },
		func(io.Closer) { cancel() },
	} {
		resp, err := transport.RoundTrip(req)
		apitest.Must(t, err)
		stop(resp.Body)
		_, _ = io.ReadAll(resp.Body)
		apitest.Must(t, resp.Body.Close())
		if transport.recovered() {
			t.Error("it counts as an outage")
		}
	}
}
