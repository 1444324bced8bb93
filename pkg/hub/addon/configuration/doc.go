// Package configuration decides which configuration applies to a cluster's agent, and with which
// values (sources.go).
//
// An AgentRevision defines an agent, and an AddOnDeploymentConfig may change that (kinds.go).
// Both are read in store.go and validated once for each content (validate_*.go).
// decide_configuration.go decides which ones apply, decide_hosting.go on which cluster an agent
// runs, and decide_values.go with which values and in which namespace. As long as Open Cluster
// Management has not chosen one, nothing is known; one that is invalid, missing or does not fit
// the deployed agent is refused.
//
// outcomes.go tells hub.conditions, for the condition ConfigurationApplied (status.go).
//
// It writes nothing.
package configuration
