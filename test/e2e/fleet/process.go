package fleet

import (
	"time"
)

// Process is one thing the supervisor keeps running.
type Process struct {
	// Name is <cluster>/<process>, such as "cluster1/etcd".
	Name string `json:"name"`
	// Args starts with the path of the program.
	Args []string `json:"args"`
	// Env is added to the little that every process gets.
	Env []string `json:"env,omitempty"`
	// Tier orders a stop: the highest goes first, each when the one above it is gone.
	Tier Tier `json:"tier"`
	// Probe is the URL that answers 200 when the process is ready; "" has none.
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

// ProcessStatus is what the supervisor knows about a process.
type ProcessStatus struct {
	Process
	identity
	// Wanted is false after a Stop.
	Wanted bool `json:"wanted"`
	// Running is true while the process exists.
	Running bool `json:"running"`
	// Since is when it last started or ended.
	Since time.Time `json:"since"`
	// Restarts counts the times it ended unasked.
	Restarts int `json:"restarts"`
	// LastExit tells how it last ended, such as "exit status 1".
	LastExit string `json:"lastExit,omitempty"`
}

// graceFor is how long a process may take to end before it is killed. Data of
// a stopped fleet is thrown away, so the servers get little.
func graceFor(tier Tier) time.Duration {
	switch tier {
	case TierStore, TierServer, TierControllers:
		return 2 * time.Second
	default:
		return 5 * time.Second
	}
}

// backoff is the wait before the n-th start in a row that did not last.
func backoff(n int) time.Duration {
	const most = 8 * time.Second
	if n > 4 {
		return most
	}
	return min(most, 500*time.Millisecond<<n)
}

// lasting is how long a process must have run for its next failure to count
// as a first one again.
const lasting = 30 * time.Second
