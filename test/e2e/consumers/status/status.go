// Package status is what the reconciler tells of itself to whoever asks it.
package status

import (
	"fmt"
	"time"
)

// Port is where the reconciler serves its Report, on the Pod's address.
const Port = 8080

// maxFailures is how many failures are told one by one.
const maxFailures = 20

// Report has a Cluster for every cluster by the name "namespace/profile".
type Report map[string]Cluster

// Cluster is what the reconciler did with a cluster since it started.
type Cluster struct {
	// Engagements is how often work on the cluster began.
	Engagements int `json:"engagements"`
	// Engaged tells whether it goes on.
	Engaged bool `json:"engaged"`
	// Reconciles is how many ConfigMaps were brought in order.
	Reconciles int `json:"reconciles"`
	// Answers is how many answers there were, by HTTP status.
	Answers map[string]int `json:"answers"`
	// Failed is how many requests had no answer, or one that is not 2xx.
	Failed int `json:"failed"`
	// Failures are the first of them.
	Failures []string `json:"failures,omitempty"`
	// Tokens is how many different tokens requests bore.
	Tokens int `json:"tokens"`
}

// Fail counts a request that failed.
func (c *Cluster) Fail(at time.Time, method, path, why string) {
	c.Failed++
	if len(c.Failures) < maxFailures {
		c.Failures = append(c.Failures, fmt.Sprintf("%s %s %s: %s", at.UTC().Format(time.RFC3339Nano), method, path, why))
	}
}
