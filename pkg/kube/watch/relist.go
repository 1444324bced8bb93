package watch

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// outageKnown is for how long a watch that resumes counts as one that was interrupted by the
// last outage. It exceeds the longest pause of a client-go reflector between two attempts,
// which is a minute.
const outageKnown = 2 * time.Minute

var errRelist = errors.New("listing again, because the API server could not be reached before")

// Outages remembers when the API server could not be reached. It is safe for concurrent use.
type Outages struct {
	last atomic.Pointer[time.Time]
}

// Last returns when a watch was last interrupted, or could not be resumed; zero if that never happened.
func (o *Outages) Last() time.Time {
	if last := o.last.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// RelistAfterOutage returns a copy of a configuration whose clients' caches list all objects
// again after the API server could not be reached: each once, within the given time after its
// watch has resumed, at random, so that many clients do not list at once. It also returns the
// outages that these clients notice.
//
// The API server may have restarted with an older state, restored from a snapshot of its
// etcd. Then a resumed watch shows nothing until the restored server has counted up to the
// resource version that the watch resumed from, and never shows what changed until then.
// client-go resumes, because the API server has usually just been restarted. Comparing
// resource versions would not tell: the restored server soon reaches those of the lost state.
func RelistAfterOutage(cfg *rest.Config, within time.Duration) (*rest.Config, *Outages) {
	cfg = rest.CopyConfig(cfg)
	outages := &Outages{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &relistAfterOutage{next: next, within: within, all: outages}
	})
	return cfg, outages
}

type relistAfterOutage struct {
	next   http.RoundTripper
	within time.Duration
	own    Outages  // of this client
	all    *Outages // of all clients

	// listed has the watchKeys whose last attempt to list by a watch failed: the reflector sends
	// a plain LIST, and its next watch begins with what that returned.
	listed sync.Map
}

type watchKey struct{ path, labels, fields, accept string }

// RoundTrip implements http.RoundTripper.
func (r *relistAfterOutage) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if req.Method != http.MethodGet || !isTrue(query.Get("watch")) {
		return r.next.RoundTrip(req)
	}
	key := watchKey{req.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector"), req.Header.Get("Accept")}
	_, listed := r.listed.LoadAndDelete(key)
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := r.next.RoundTrip(req.WithContext(ctx))
	from, lists := query.Get("resourceVersion"), isTrue(query.Get("sendInitialEvents"))
	resumes := from != "" && from != "0" && !lists
	if lists && (err != nil || resp.StatusCode != http.StatusOK) {
		r.listed.Store(key, nil)
	}
	if err != nil {
		if resumes {
			r.interrupted(ctx)
		}
		cancel(nil)
		return nil, err
	}
	body := &watchBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, broken: r.interrupted}
	switch {
	case !resumes:
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		r.interrupted(ctx)
	case resp.StatusCode == http.StatusOK && !listed && r.recovered():
		body.relist = time.AfterFunc(rand.N(r.within+1), func() { cancel(errRelist) }) //nolint:gosec // no secret
	}
	resp.Body = body
	return resp, nil
}

func isTrue(parameter string) bool { return parameter == "true" || parameter == "1" }

// interrupted records an outage, unless it was the client that ended the watch.
func (r *relistAfterOutage) interrupted(ctx context.Context) {
	if ctx.Err() == nil {
		now := time.Now()
		r.own.last.Store(&now)
		r.all.last.Store(&now)
	}
}

// recovered reports whether there was an outage shortly before.
func (r *relistAfterOutage) recovered() bool {
	return time.Since(r.own.Last()) < outageKnown
}

// watchBody ends a watch with an error if its objects are to be listed again: a reflector
// lists after an error, and resumes after a regular end.
type watchBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	relist *time.Timer // nil while it continues
	broken func(context.Context)
}

// Read implements io.Reader.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil, errors.Is(err, io.EOF):
	case errors.Is(context.Cause(b.ctx), errRelist):
		err = errRelist
	default:
		b.broken(b.ctx)
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchBody) Close() error {
	if b.relist != nil {
		b.relist.Stop()
	}
	b.cancel(nil)
	return b.ReadCloser.Close()
}
