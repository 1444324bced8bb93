// Package report remembers the outcome of every pair, and reports it: in the condition
// ProfilesSynced, in events, and in the metrics.
//
// It reads no objects and decides nothing about profiles. Package inventory records the outcomes
// (Outcomes) after each reconciliation, and reads them for the condition, which status.go composes.
// Package notices creates the events (Reports), which desired_events.go words.
package report
