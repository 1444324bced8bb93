// Package report remembers the outcome of every pair, and reports it: in the condition
// ProfilesSynced, in events, and in the metrics.
//
// It reads no objects and decides nothing about profiles. Package inventory records the outcomes
// (Outcomes) after each reconciliation, reads them for the condition, which status.go composes,
// and runs the Reporter as the controller hub.inventory-report. Package notices creates the events;
// desired_events.go words them.
package report
