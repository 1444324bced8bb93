// Package addon makes the inventory an addon of Open Cluster Management. It registers
// each cluster's agent, approves its certificate, grants its rights on the hub, deploys
// it to the spoke, reports its health, and makes sure that its removal completes.
//
// Most of this is done by controllers of addon-framework, which run on the elected
// leader and call this package: desired.go says what the manifests are, render.go
// renders each distinct one once, grants.go applies the rights (desired_grants.go), and
// agent.go has the rest. informers.go and trim_work.go keep from the framework what it does
// not need: of a ManifestWork all that it does not read, and every event that changes
// nothing it reads.
//
// What a cluster's agent is like says an AgentRevision, and where an AddOnDeploymentConfig
// changes that, that one (kinds.go). Both are read in configurations.go. decide_revision.go
// and decide_configuration.go say which ones count and what their values are, the judge_*.go
// what is wrong with them. While one is refused, or OCM has not said yet which one counts,
// the ManifestWork of the cluster stays; desired_held.go makes the clean-up Job from it.
// outcomes.go tells hub.conditions what became of it. The same holds while the hub does not
// serve AgentRevisions, which framework.go begins without.
//
// A rollout goes on when a ManifestWork is available. work_writer.go writes into each when
// that is (desired_rules.go).
//
// An agent may run on another cluster than its own (hosting.go). desired_hosting.go says
// which manifests go where, decide_hosting.go where an agent must not run.
//
// Certificate requests are approved by the controller hub.csr-approval (approver.go),
// as decide_approval.go judges them.
//
// However, addon-framework waits forever for the clean-up Job, even if the spoke never
// comes back or the Job cannot succeed there. Likewise a cluster that is deleted from
// the hub waits for this addon's ManifestWorks, which only the spoke's work agent releases. The controller
// hub.cleanup-timeout ends these waits (decide_release.go).
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
//   - the approval of CertificateSigningRequests of this addon;
//   - the agents' RoleBindings in the cluster namespaces;
//   - Events on ManagedClusterAddOns and ManagedClusters.
//
// Requeue: nothing is done without an event; what fails is tried again at least every
// minute. hub.cleanup-timeout requeues a cluster for the end of its timeout,
// and every five seconds while ManifestWorks of an unreachable spoke are not deleted
// yet.
//
// RBAC:
//   - managedclusteraddons named cluster-inventory: get, list, watch, update, patch; status: patch;
//     finalizers: update;
//   - clustermanagementaddons named cluster-inventory: list, watch; status: patch;
//   - addondeploymentconfigs, agentrevisions: list, watch;
//   - managedclusters: list, watch;
//   - manifestworks: list, watch, create, patch, delete;
//   - certificatesigningrequests: list, watch; approval: update; signer
//     kubernetes.io/kube-apiserver-client: approve;
//   - rolebindings: get, list, watch, create, patch; clusterroles: bind of the agents' one;
//   - events: create, patch.
package addon
