package hub

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestFenceWrites(t *testing.T) {
	const lease = "/apis/coordination.k8s.io/v1/namespaces/inventory/leases"
	taken := false
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path)
		if taken && strings.HasPrefix(r.URL.Path, lease) {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	t.Cleanup(server.Close)
	clock := testingclock.NewFakePassiveClock(time.Now())
	client, err := rest.HTTPClientFor(fenceWrites(&rest.Config{Host: server.URL}, 8*time.Second, clock))
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
	apitest.Must(t, send(http.MethodPost, lease))
	after(8 * time.Second)
	writes(true, "eight seconds after the Lease was created")
	after(time.Millisecond)
	writes(false, "later")
	apitest.Must(t, send(http.MethodPut, "/path/of/the/hub"+lease+"/cluster-inventory"))
	writes(true, "after a renewal")
	clock.SetTime(clock.Now().Round(0).Add(time.Minute)) // no monotonic clock tells
	taken = true
	apitest.Must(t, send(http.MethodPut, lease+"/cluster-inventory"))
	writes(false, "after another manager has taken the Lease")
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
