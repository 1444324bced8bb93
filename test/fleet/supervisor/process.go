package supervisor

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// Process is a program to be kept running.
type Process struct {
	// Name is <cluster>/<process>, such as "cluster1/etcd".
	Name string `json:"name"`
	// Args starts with the path of the program.
	Args []string `json:"args"`
	// Env is added to the few variables that every process gets.
	Env []string `json:"env,omitempty"`
	// Tier orders a stop: the highest goes first, each when the one above it is gone.
	Tier Tier `json:"tier"`
	// Probe is a URL that answers 200 when the process is ready; without one a
	// process is ready when it runs.
	Probe string `json:"probe,omitempty"`
}

// Tier is the place of a process in the order of starting and stopping.
type Tier int

// What runs on what.
const (
	TierStore Tier = iota
	TierServer
	TierControllers
	TierWebhooks
	TierManagement
	TierAgents
)

// Status is what the supervisor knows about a process.
type Status struct {
	Process
	Identity
	// Wanted is false after a Stop.
	Wanted bool `json:"wanted"`
	// Running is true while the process exists.
	Running bool `json:"running"`
	// Since is when it last started or ended.
	Since time.Time `json:"since"`
	// Restarts counts the times it ended without being stopped.
	Restarts int `json:"restarts"`
	// LastExit tells how it last ended, such as "exit status 1".
	LastExit string `json:"lastExit,omitempty"`
}

// probes asks health endpoints, whose certificates are often self-signed.
var probes = &http.Client{
	Timeout: 3 * time.Second,
	Transport: &http.Transport{
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // only ever loopback, and only the status is read
		},
		DisableKeepAlives: true,
	},
}

// Ready reports whether the process responds to its probe.
func (p Process) Ready(ctx context.Context) bool {
	if p.Probe == "" {
		return true
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Probe, nil)
	if err != nil {
		return false
	}
	response, err := probes.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// graceFor is how long a process may take to end before it is killed. The data
// of a stopped fleet is thrown away, so servers get little.
func graceFor(tier Tier) time.Duration {
	switch tier {
	case TierStore, TierServer, TierControllers:
		return 2 * time.Second
	default:
		return 5 * time.Second
	}
}

// backoff is the wait before restart n of a process that keeps ending.
func backoff(n int) time.Duration {
	const most = 8 * time.Second
	if n > 4 {
		return most
	}
	return min(most, 500*time.Millisecond<<n)
}

// lasting is how long a process must have run for its next failure to count as the first
// one again.
const lasting = 30 * time.Second
