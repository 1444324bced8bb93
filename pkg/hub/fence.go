package hub

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// errNotRenewed is the error of a write that was not sent.
var errNotRenewed = errors.New("the lease of the leader election was not renewed in time, " +
	"so another manager may be the leader, and nothing is written")

// fenceWrites returns a copy of a configuration whose clients send no write while their last renewal
// of the leader election's Lease is older than limit. client-go's leader election alone does not
// ensure that: a leader that was suspended continues to work from old caches until it has failed to
// renew the Lease for renewDeadline, although another manager may have taken over long before.
// Before the first renewal, nothing is held back: controllers are not running yet.
func fenceWrites(cfg *rest.Config, limit time.Duration, clock clock.PassiveClock) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	renewed := &atomic.Pointer[time.Time]{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fencedWrites{next, renewed, limit, clock} })
	return cfg
}

type fencedWrites struct {
	next    http.RoundTripper
	renewed *atomic.Pointer[time.Time] // when the last successful renewal was sent; nil before the first
	limit   time.Duration
	clock   clock.PassiveClock
}

// RoundTrip implements http.RoundTripper.
func (f fencedWrites) RoundTrip(req *http.Request) (*http.Response, error) {
	now := f.clock.Now()
	switch {
	case req.Method == http.MethodGet:
		return f.next.RoundTrip(req)
	case strings.Contains(req.URL.Path, "/apis/coordination.k8s.io/"): // after the path of the URL, if it has one
		resp, err := f.next.RoundTrip(req)
		if err == nil && resp.StatusCode < http.StatusMultipleChoices {
			f.renewed.Store(&now)
		}
		return resp, err
	}
	if last := f.renewed.Load(); last != nil && elapsed(*last, now) > f.limit {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must
		}
		return nil, errNotRenewed
	}
	return f.next.RoundTrip(req)
}

// elapsed returns the time between two moments. The monotonic clock may stand still while a machine
// is suspended, and the wall clock may be set back, so the longer time counts.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
