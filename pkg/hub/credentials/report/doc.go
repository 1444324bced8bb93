// Package report remembers what is wrong with each account, and reports it: in the condition
// CredentialsSynced, in events in consumers' namespaces, and in the metrics.
//
// It reads no objects and no tokens. Package credentials records the outcome of an account (Outcomes)
// after each reconciliation, and reads those of a cluster for the condition, whose words are in
// status.go, and those of a namespace for its events, which package notices creates.
package report
