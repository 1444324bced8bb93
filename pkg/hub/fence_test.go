package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const (
	leases    = "/apis/coordination.k8s.io/v1/namespaces/inventory/leases"
	leasePath = leases + "/cluster-inventory"
)

func TestFenceWrites(t *testing.T) {
	taken := false
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path)
		if taken && strings.HasPrefix(r.URL.Path, leases) {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	t.Cleanup(server.Close)
	clock := testingclock.NewFakePassiveClock(time.Now())
	client, err := rest.HTTPClientFor(fenceWrites(&rest.Config{Host: server.URL}, &fence{
		limit: 8 * time.Second, clock: clock, outage: func() time.Time { return time.Time{} },
	}))
	apitest.Must(t, err)
	send := func(method, path string) error {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("{}"))
		apitest.Must(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	after := func(since time.Duration) { clock.SetTime(clock.Now().Add(since)) }
	writes := func(want bool, when string) {
		t.Helper()
		for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
			got = nil
			switch err := send(method, "/api/v1/secrets"); {
			case want && err != nil:
				t.Errorf("%s %s: %v", method, when, err)
			case !want && !errors.Is(err, errNotRenewed):
				t.Errorf("%s %s: %v, want %v", method, when, err, errNotRenewed)
			case len(got) != map[bool]int{true: 1}[want]:
				t.Errorf("%s %s: the server got %v", method, when, got)
			}
		}
		if err := send(http.MethodGet, "/api/v1/secrets"); err != nil {
			t.Errorf("GET %s: %v", when, err)
		}
	}
	writes(true, "before there is a leader")
	apitest.Must(t, send(http.MethodPost, leases))
	after(8 * time.Second)
	writes(true, "eight seconds after the Lease was created")
	after(time.Millisecond)
	writes(false, "later")
	apitest.Must(t, send(http.MethodPut, "/path/of/the/hub"+leasePath))
	writes(true, "after a renewal")
	clock.SetTime(clock.Now().Round(0).Add(time.Minute)) // no monotonic clock tells
	taken = true
	apitest.Must(t, send(http.MethodPut, leasePath))
	writes(false, "after another manager has taken the Lease")
}

// A write that is sent when the hub has returned may rest on what a restored hub does not say.
func TestWritesWaitForARenewalAfterAnOutage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	var outage atomic.Pointer[time.Time]
	outage.Store(&time.Time{})
	client, err := rest.HTTPClientFor(fenceWrites(&rest.Config{Host: server.URL}, &fence{
		limit: time.Hour, clock: clock.RealClock{}, outage: func() time.Time { return *outage.Load() },
	}))
	apitest.Must(t, err)
	send := func(ctx context.Context, method, path string) error {
		req, err := http.NewRequestWithContext(ctx, method, server.URL+path, nil)
		apitest.Must(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	renew := func() { apitest.Must(t, send(t.Context(), http.MethodPut, leasePath)) }
	renew()
	now := time.Now()
	outage.Store(&now)
	ctx, cancel := context.WithTimeout(t.Context(), 10*awaitRenewal)
	defer cancel()
	if err := send(ctx, http.MethodPatch, "/api/v1/secrets/one"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a renewal, a write returns %v", err)
	}
	apitest.Must(t, send(t.Context(), http.MethodGet, "/api/v1/secrets/one"))
	written := make(chan error, 1)
	go func() { written <- send(t.Context(), http.MethodPatch, "/api/v1/secrets/one") }()
	renew()
	apitest.Must(t, <-written)
}

func TestOlderLease(t *testing.T) {
	now := time.Now()
	lease := func(uid types.UID, transitions int32, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{UID: uid},
			Spec: coordinationv1.LeaseSpec{
				LeaseTransitions: &transitions, RenewTime: ptr.To(metav1.NewMicroTime(now.Add(renewed))),
			},
		}
	}
	tests := map[string]struct {
		method string
		lease  *coordinationv1.Lease
		want   error
	}{
		"renewed":     {http.MethodGet, lease("1", 5, time.Second), nil},
		"not renewed": {http.MethodGet, lease("1", 5, 0), nil},
		"renewed by this one, whose clock was set back": {http.MethodPut, lease("1", 5, -time.Second), nil},
		"taken by another one, whose clock is slow":     {http.MethodGet, lease("1", 6, -time.Hour), nil},
		"recreated":               {http.MethodGet, lease("2", 0, -time.Hour), nil},
		"before the last renewal": {http.MethodGet, lease("1", 5, -time.Second), errRestored},
		"before another one led":  {http.MethodGet, lease("1", 4, time.Second), errRestored},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := lease("1", 5, 0)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(answer)
			}))
			t.Cleanup(server.Close)
			restored := false
			client, err := rest.HTTPClientFor(fenceWrites(&rest.Config{Host: server.URL}, &fence{
				limit: time.Hour, clock: clock.RealClock{}, outage: func() time.Time { return time.Time{} },
				restored: func() { restored = true },
			}))
			apitest.Must(t, err)
			send := func(method, path string) error {
				req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
				apitest.Must(t, err)
				resp, err := client.Do(req)
				if err != nil {
					return err
				}
				got := &coordinationv1.Lease{}
				apitest.Must(t, json.NewDecoder(resp.Body).Decode(got))
				if diff := cmp.Diff(answer.UID, got.UID); diff != "" {
					t.Errorf("%s returns another Lease: %s", method, diff)
				}
				return resp.Body.Close()
			}
			apitest.Must(t, send(http.MethodGet, leasePath)) // it may stand by
			answer = test.lease
			if err := send(test.method, leasePath); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			for _, method := range []string{http.MethodPut, http.MethodDelete} {
				for _, path := range []string{leasePath, "/api/v1/secrets/one"} {
					if err := send(method, path); !errors.Is(err, test.want) {
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
