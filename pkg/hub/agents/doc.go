// Package agents knows how far the agents of the fleet are, from their addons.
//
// It reads only what Open Cluster Management writes into a ManagedClusterAddOn's status while it
// rolls out AgentRevisions.
package agents
