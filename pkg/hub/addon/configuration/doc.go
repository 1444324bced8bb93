// Package configuration decides which configuration applies to a cluster's agent, and with which
// values (sources.go).
//
// An AgentRevision defines an agent, and an AddOnDeploymentConfig may change that (kinds.go).
// Both are read in store.go and validated once for each content (validate_*.go).
// decide_revision.go and decide_configuration.go decide which ones apply, decide_hosting.go
// where an agent must not run. As long as Open Cluster Management has not chosen one, nothing
// is known; one that is invalid, missing or does not fit the deployed agent is refused.
//
// outcomes.go tells hub.conditions, for the condition ConfigurationApplied (status.go).
//
// It writes nothing.
package configuration
