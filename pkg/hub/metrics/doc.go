// Package metrics holds the manager's own metrics: the states of profiles and copied
// tokens, how long changes take, and the manager's writes. docs/metrics.md has the table of
// them, which a test compares with the exported metrics.
//
// The controllers report changes as they happen: nothing is recounted, neither for an event
// nor for a scrape, and a scrape makes no request. Only the leader knows the counts; a
// standby manager shows zeros.
//
// No label has a value that a spoke or a tenant chooses, with one exception that the
// administrator must turn on: the namespaces of profiles.
//
// It imports no other concern, so that each may use it.
package metrics
