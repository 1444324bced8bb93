package apitest

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// slowVariable holds a duration. Every request except watches is then delayed by a random
// time up to it, as on an overloaded machine: a test that fails depends on timing.
const slowVariable = "APITEST_SLOW"

// slowed slows down the clients of a configuration if the environment says so.
func slowed(tb testing.TB, cfg *rest.Config) *rest.Config {
	tb.Helper()
	value := os.Getenv(slowVariable)
	if value == "" {
		return cfg
	}
	most, err := time.ParseDuration(value)
	if err != nil || most <= 0 {
		tb.Fatalf("%s=%q: want a positive duration, such as 1s", slowVariable, value)
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return slow{next, most} })
	return cfg
}

type slow struct {
	next http.RoundTripper
	most time.Duration
}

// RoundTrip sends the request after a while.
func (s slow) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.RawQuery, "watch=") {
		select {
		case <-time.After(rand.N(s.most)): //nolint:gosec // how long is no secret
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return s.next.RoundTrip(req)
}
