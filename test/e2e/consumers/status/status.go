// Package status is the reconciler's report about itself.
package status

import (
	"fmt"
	"time"
)

// Port is where the reconciler serves its Report, on the Pod's address.
const Port = 8080

// maxFailures is how many failures are reported individually.
const maxFailures = 20

// Report holds a Cluster for every cluster, by the name "namespace/profile".
type Report map[string]Cluster

// Cluster is what the reconciler has done with a cluster since it started.
type Cluster struct {
	// Engagements is how often work on the cluster began.
	Engagements int `json:"engagements"`
	// Engaged says whether it continues.
	Engaged bool `json:"engaged"`
	// Reconciles is how many ConfigMaps were reconciled.
	Reconciles int `json:"reconciles"`
	// Answers is how many responses there were, by HTTP status.
	Answers map[string]int `json:"answers"`
	// Failed is how many requests had no response, or one other than 2xx.
	Failed int `json:"failed"`
	// Failures are the first of them.
	Failures []string `json:"failures,omitempty"`
	// Tokens is how many different tokens the requests had.
	Tokens int `json:"tokens"`
}

// Fail counts a request that failed.
func (c *Cluster) Fail(at time.Time, method, path, why string) {
	c.Failed++
	if len(c.Failures) < maxFailures {
		c.Failures = append(c.Failures, fmt.Sprintf("%s %s %s: %s", at.UTC().Format(time.RFC3339Nano), method, path, why))
	}
}
