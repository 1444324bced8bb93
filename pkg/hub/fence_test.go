package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	leases    = "/apis/coordination.k8s.io/v1/namespaces/inventory/leases"
	leasePath = leases + "/" + contract.LeaseName
)

// leaseServer serves the Lease at the returned version, and answers everything else with nothing.
func leaseServer(t *testing.T) (server *httptest.Server, version *atomic.Int64, got func() []string) {
	t.Helper()
	version = &atomic.Int64{}
	version.Store(7)
	var calls []string
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+r.URL.Path)
		if !strings.Contains(r.URL.Path, leases) {
			return
		}
		if version.Load() == taken {
			w.WriteHeader(http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Name: path.Base(r.URL.Path), ResourceVersion: fmt.Sprint(version.Load())},
		})
	}))
	t.Cleanup(server.Close)
	return server, version, func() []string {
		defer func() { calls = nil }()
		return calls
	}
}

// taken is the version of a Lease whose renewal the server refuses.
const taken = -1

// fenced returns a function that sends a request from behind a fence.
func fenced(t *testing.T, server *httptest.Server, f *fence) (send func(ctx context.Context, method, path string) error) {
	t.Helper()
	if f.outage == nil {
		f.outage = func() time.Time { return time.Time{} }
	}
	client, err := rest.HTTPClientFor(fenceWrites(&rest.Config{Host: server.URL}, f))
	apitest.Must(t, err)
	return func(ctx context.Context, method, path string) error {
		req, err := http.NewRequestWithContext(ctx, method, server.URL+path, strings.NewReader("{}"))
		apitest.Must(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if strings.Contains(path, leases) && resp.StatusCode == http.StatusOK {
			apitest.Must(t, json.NewDecoder(resp.Body).Decode(&coordinationv1.Lease{})) // it can still be read
		}
		return resp.Body.Close()
	}
}

func TestFenceWrites(t *testing.T) {
	server, version, got := leaseServer(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	send := fenced(t, server, &fence{limit: 8 * time.Second, clock: clock})
	after := func(since time.Duration) { clock.SetTime(clock.Now().Add(since)) }
	writes := func(want bool, when string) {
		t.Helper()
		for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
			got()
			err := send(t.Context(), method, "/api/v1/secrets")
			sent := len(got())
			switch {
			case want && err != nil:
				t.Errorf("%s %s: %v", method, when, err)
			case !want && !errors.Is(err, errNotRenewed):
				t.Errorf("%s %s: %v, want %v", method, when, err, errNotRenewed)
			case sent != map[bool]int{true: 1}[want]:
				t.Errorf("%s %s: the server got %d requests", method, when, sent)
			}
		}
		if err := send(t.Context(), http.MethodGet, "/api/v1/secrets"); err != nil {
			t.Errorf("GET %s: %v", when, err)
		}
	}
	writes(true, "before there is a leader")
	apitest.Must(t, send(t.Context(), http.MethodPut, leasePath))
	after(8 * time.Second)
	writes(true, "eight seconds after the Lease was created")
	after(time.Millisecond)
	writes(false, "later")
	apitest.Must(t, send(t.Context(), http.MethodPut, leases+"/another"))
	writes(false, "after another Lease was renewed")
	_ = send(t.Context(), http.MethodPut, leasePath+"?dryRun=All")
	writes(false, "after a renewal was tried out")
	apitest.Must(t, send(t.Context(), http.MethodPut, "/path/of/the/hub"+leasePath))
	writes(true, "after a renewal")
	clock.SetTime(clock.Now().Round(0).Add(time.Minute)) // no monotonic clock tells
	version.Store(taken)
	apitest.Must(t, send(t.Context(), http.MethodPut, leasePath))
	writes(false, "after another manager has taken the Lease")
}

// A write that is sent when the hub has returned may rest on what a restored hub does not say.
func TestWritesWaitForARenewalAfterAnOutage(t *testing.T) {
	server, _, _ := leaseServer(t)
	var outage atomic.Pointer[time.Time]
	outage.Store(&time.Time{})
	fails := func() {
		now := time.Now()
		outage.Store(&now)
	}
	looks := make(chan struct{}, 1)
	send := fenced(t, server, &fence{limit: time.Hour, clock: clock.RealClock{}, outage: func() time.Time {
		select {
		case looks <- struct{}{}:
		default:
		}
		return *outage.Load()
	}})
	renew := func() { apitest.Must(t, send(t.Context(), http.MethodPut, leasePath)) }
	renew()
	fails()
	ctx, cancel := context.WithTimeout(t.Context(), 10*renewalLook)
	defer cancel()
	if err := send(ctx, http.MethodPatch, "/api/v1/secrets/one"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a renewal, a write returns %v", err)
	}
	apitest.Must(t, send(t.Context(), http.MethodGet, "/api/v1/secrets/one"))
	written := make(chan error, 1)
	for len(looks) > 0 {
		<-looks
	}
	go func() { written <- send(t.Context(), http.MethodPatch, "/api/v1/secrets/one") }()
	<-looks // it waits for a renewal after the outage
	<-time.After(2 * renewalLook)
	renew()
	fails() // a watch that cannot be resumed keeps failing
	apitest.Must(t, <-written)
}

func TestOlderLease(t *testing.T) {
	for name, test := range map[string]struct {
		next   int64
		method string
		want   error
	}{
		"renewed":                       {8, http.MethodGet, nil},
		"not renewed":                   {7, http.MethodGet, nil},
		"older":                         {6, http.MethodGet, errRestored},
		"created in a state without it": {6, http.MethodPost, errRestored},
	} {
		t.Run(name, func(t *testing.T) {
			server, version, _ := leaseServer(t)
			restored := false
			send := fenced(t, server, &fence{
				limit: time.Hour, clock: clock.RealClock{}, restored: func() { restored = true },
			})
			apitest.Must(t, send(t.Context(), http.MethodGet, leasePath)) // it may stand by
			version.Store(test.next)
			if err := send(t.Context(), test.method, leasePath); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			for _, method := range []string{http.MethodPut, http.MethodDelete} {
				for _, path := range []string{leasePath, "/api/v1/secrets/one"} {
					if err := send(t.Context(), method, path); !errors.Is(err, test.want) {
						t.Errorf("then %s %s returns %v, want %v", method, path, err, test.want)
					}
				}
			}
			if restored != (test.want != nil) {
				t.Errorf("it is restored: %v", restored)
			}
		})
	}
}

func TestElapsed(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		to   time.Time
		want time.Duration
	}{
		{now.Add(time.Second), time.Second},
		{now.Round(0).Add(time.Hour), time.Hour},
	} {
		if got := elapsed(now, test.to); got != test.want {
			t.Errorf("elapsed until %s: %s, want %s", test.to, got, test.want)
		}
	}
}
