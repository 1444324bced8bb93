// Package agents counts the agents of the fleet by their state, according to their addons, for the
// metrics.
//
// It reads what Open Cluster Management writes into a ManagedClusterAddOn's status while it rolls
// out AgentRevisions, and the addon's conditions. It writes nothing. An agent may write the status
// of its own addon, so no text in there is taken for a name that exists: the metrics keep only
// published reasons, and revisions that the ClusterManagementAddOn names.
//
// # RBAC
//
// None of its own: the manager's cache has these objects anyway.
package agents
