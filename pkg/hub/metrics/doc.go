// Package metrics has the manager's own metrics: what has become of profiles and of
// copied tokens, how long changes take, and what was written. docs/metrics.md has the
// table of them, which a test compares with what is served.
//
// The controllers say what changes, when it changes: nothing is counted anew, neither
// for an event nor for a scrape, and a scrape makes no request. What is counted is known
// to the leader only; a manager that stands by shows zeros.
//
// No label has a value that a spoke or a tenant chooses, with one exception that the
// administrator must turn on: the namespaces of profiles.
//
// It imports no other concern, so that each may use it.
package metrics
