package hub

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

var (
	// errNotRenewed is the error of a write that was not sent.
	errNotRenewed = errors.New("the lease of the leader election was not renewed in time, " +
		"so another manager may be the leader, and nothing is written")

	// errRestored is the error of a manager whose caches show a state that the hub has lost.
	errRestored = errors.New("the lease of the leader election has an older version than before, so the hub was " +
		"restored: this manager writes nothing more, and must start again")
)

// renewalLook is how often a write that waits for the next renewal looks whether it has come.
const renewalLook = 20 * time.Millisecond

// fenceWrites returns a copy of a configuration whose clients send no write that may come from caches
// of another state than the hub's. The Lease of the leader election shows that state, since its leader
// renews it every retryPeriod.
//
//   - While the last renewal is older than fence.limit, writes fail. client-go's leader election alone
//     does not ensure that: a leader that was suspended continues to work from old caches until it has
//     failed to renew the Lease for renewDeadline, although another manager may have taken over long before.
//   - After an outage, writes wait until the Lease was renewed: that succeeds at once only if the hub has
//     not lost the last renewal.
//   - Once the hub shows the Lease at an older version than before, all requests for the Lease and all
//     writes fail, and fence.restored is called. A manager that stands by also sees that. Versions of
//     other objects say less: the counter of a restored hub soon exceeds them, but the Lease gets a new
//     one only if a manager renews it, and a renewal from the lost state is refused.
//
// Before the first renewal, nothing is held back: controllers are not running yet.
func fenceWrites(cfg *rest.Config, f *fence) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fencedWrites{next, f} })
	return cfg
}

// fence is what all clients of a manager know about the Lease.
type fence struct {
	limit    time.Duration
	clock    clock.PassiveClock
	outage   func() time.Time // when the API server could last not be reached
	restored func()           // it may be called several times

	renewed atomic.Pointer[time.Time] // when the last successful renewal was sent; nil before the first
	version atomic.Pointer[string]    // of the Lease; nil before it was seen
	isOver  atomic.Bool               // the hub has lost the state that this manager knows
}

type fencedWrites struct {
	next http.RoundTripper
	*fence
}

// RoundTrip implements http.RoundTripper.
func (f fencedWrites) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	// After the path of the hub's URL, if it has one.
	isLease := strings.Contains(req.URL.Path, "/apis/coordination.k8s.io/") && !query.Has("dryRun") && !query.Has("watch")
	if req.Method == http.MethodGet && !isLease {
		return f.next.RoundTrip(req)
	}
	var err error
	switch {
	case f.isOver.Load():
		err = errRestored
	case !isLease:
		err = f.awaitRenewal(req.Context())
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	if !isLease {
		return f.next.RoundTrip(req)
	}
	now := f.clock.Now()
	resp, err := f.next.RoundTrip(req)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		return resp, err
	}
	isOurs, err := f.observe(resp)
	if err != nil {
		_ = resp.Body.Close() // the error says more
		return nil, err
	}
	if isOurs && req.Method != http.MethodGet {
		f.renewed.Store(&now)
	}
	return resp, nil
}

// awaitRenewal returns when a write may be sent. It does not wait for the end of an outage that begins meanwhile.
func (f *fence) awaitRenewal(ctx context.Context) error {
	outage := f.outage()
	return wait.PollUntilContextCancel(ctx, renewalLook, true, func(context.Context) (bool, error) {
		last := f.renewed.Load()
		switch {
		case f.isOver.Load():
			return false, errRestored
		case last == nil:
			return true, nil
		case elapsed(*last, f.clock.Now()) > f.limit:
			return false, errNotRenewed
		}
		return !last.Before(outage), nil
	})
}

// observe reports whether a response has the Lease, compares its version with the one before, and leaves
// the response readable.
func (f *fence) observe(resp *http.Response) (isOurs bool, err error) {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, err
	}
	_ = resp.Body.Close() // it has been read
	resp.Body = io.NopCloser(bytes.NewReader(body))
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, isLease := object.(*coordinationv1.Lease)
	if err != nil || !isLease || lease.Name != contract.LeaseName {
		return false, nil //nolint:nilerr // the leader election reports it
	}
	version := lease.ResourceVersion
	before := f.version.Swap(&version)
	if before == nil {
		return true, nil
	}
	if order, err := resourceversion.CompareResourceVersion(version, *before); err == nil && order < 0 {
		f.isOver.Store(true)
		f.restored()
		return true, errRestored
	}
	return true, nil
}

// elapsed returns the time between two moments. The monotonic clock may stand still while a machine
// is suspended, and the wall clock may be set back, so the longer time counts.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
