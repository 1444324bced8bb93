// Package addon makes the inventory an addon of Open Cluster Management. It registers
// each cluster's agent, grants its rights on the hub, deploys it to the spoke and reports its
// health.
//
// Most of this is done by controllers of addon-framework, which run on the elected leader and
// call this package: agent.go is the AgentAddon, and grants.go applies the agents' rights
// (desired_grants.go). An addon passes through agent.go once: observe.go reads from the caches
// where the agent runs and should run, and what is deployed; then two folders determine what
// the framework deploys. The first imports the second:
//   - configuration decides which configuration applies to a cluster, with which values, and
//     whether it is valid;
//   - manifests turns values into manifests, and reads those that are deployed.
//
// While a configuration is refused, or OCM has not chosen one yet, the ManifestWork of the
// cluster stays. The same applies while the hub does not serve AgentRevisions, without which
// framework.go can start.
//
// The rest adapts the framework: framework.go starts its controllers, triggers.go makes them
// reconcile after events that they ignore, and informers.go hides from them every event that
// changes nothing that they read. works.go restricts them to this addon's ManifestWorks, and
// work_writer.go writes into each of these when it is available, on which a rollout waits.
// reinstall.go keeps them from cleaning up a spoke whose addon is about to be created again.
//
// An agent may run on another cluster than its own. Without release.Options.HostedAgents the manager
// reads ManifestWorks by the names of those for clusters' own agents (works.go), and the
// framework gets no addon that may have others.
//
// Three things are apart, in folders: approval approves certificate requests, release ends waits
// for spokes that do not reconnect or are not cleaned up, and ownwork knows which ManifestWorks
// are this addon's. stored reads addons in the version in which the hub stores them.
//
// Writes, all on the hub:
//   - ManifestWorks addon-cluster-inventory-deploy-0 and
//     addon-cluster-inventory-pre-delete in the cluster namespaces, and those of hosted
//     agents in the namespaces of their hosting clusters (framework);
//   - status and finalizers of the ManagedClusterAddOns named cluster-inventory
//     (framework; the klusterlet, OCM's addon manager, the agent and hub.conditions
//     write other parts of the same status);
//   - the hashes of configurations in the status of the ClusterManagementAddOn
//     cluster-inventory (framework);
//   - the agents' RoleBindings in the cluster namespaces.
//
// Requeue: nothing happens without an event; failures are retried at least every minute.
//
// RBAC:
//   - managedclusteraddons named cluster-inventory: get, list, watch, update, patch; status: patch;
//     finalizers: update;
//   - clustermanagementaddons named cluster-inventory: list, watch; status: patch;
//   - addondeploymentconfigs, agentrevisions: list, watch;
//   - managedclusters: list, watch;
//   - manifestworks: create; those of ownwork.Names: get, list, watch, patch; with hosted
//     agents, all: list, watch, patch, delete;
//   - rolebindings: create; those of the agents' name: get, list, watch, patch; clusterroles: bind
//     of the agents' one.
package addon
