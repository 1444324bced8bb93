package main

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
)

// meters count, for every cluster, the outcomes of the requests to it.
type meters struct {
	mu       sync.Mutex
	clusters map[string]*meter
}

func newMeters() *meters { return &meters{clusters: map[string]*meter{}} }

// of returns the meter of a cluster. It stays the same however often the cluster comes and
// goes.
func (m *meters) of(cluster string) *meter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clusters[cluster] == nil {
		m.clusters[cluster] = &meter{tokens: map[[sha256.Size]byte]bool{}, seen: status.Cluster{Answers: map[string]int{}}}
	}
	return m.clusters[cluster]
}

// ServeHTTP reports all counts.
func (m *meters) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := status.Report{}
	for name, meter := range m.clusters {
		told[name] = meter.read()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(told) // the client has gone
}

type meter struct {
	mu     sync.Mutex
	seen   status.Cluster
	tokens map[[sha256.Size]byte]bool
}

func (m *meter) count(change func(*status.Cluster)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.seen)
}

func (m *meter) read() status.Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	copied := m.seen
	copied.Answers = map[string]int{}
	for code, n := range m.seen.Answers {
		copied.Answers[code] = n
	}
	return copied
}

// client returns an HTTP client whose requests are counted: as the consumer sees them,
// including the plugin's failures, and by their token.
func (m *meter) client(config *rest.Config) (*http.Client, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bearing{next, m} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Transport = outcome{client.Transport, m}
	return client, nil
}

// bearing sees requests as they leave.
type bearing struct {
	next  http.RoundTripper
	meter *meter
}

// RoundTrip records a digest of the token.
func (b bearing) RoundTrip(req *http.Request) (*http.Response, error) {
	token := sha256.Sum256([]byte(req.Header.Get("Authorization")))
	b.meter.count(func(c *status.Cluster) {
		b.meter.tokens[token] = true
		c.Tokens = len(b.meter.tokens)
	})
	return b.next.RoundTrip(req)
}

// outcome sees the outcome of a request.
type outcome struct {
	next  http.RoundTripper
	meter *meter
}

// RoundTrip counts the response, or its absence.
func (o outcome) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if req.Context().Err() != nil {
		return resp, err // the caller no longer waits for it
	}
	o.meter.count(func(c *status.Cluster) {
		switch {
		case err != nil:
			c.Fail(time.Now(), req.Method, req.URL.Path, err.Error())
		case resp.StatusCode >= http.StatusMultipleChoices:
			c.Fail(time.Now(), req.Method, req.URL.Path, resp.Status)
			fallthrough
		default:
			c.Answers[strconv.Itoa(resp.StatusCode)]++
		}
	})
	return resp, err
}
