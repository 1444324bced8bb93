// Package addon is the shell around the inventory: it makes the addon an addon
// of Open Cluster Management. It registers the agent of each cluster, approves
// its certificate, gives it its rights on the hub, ships it to the spoke, says
// whether it is healthy, and sees to it that a removal ends.
//
// Most of this is done by addon-framework, which runs on the elected leader only
// and calls what is here: desired.go renders the manifests, approve.go judges
// certificate requests, access.go grants the rights, agent.go names the rest.
//
// What addon-framework does not do is let go: it waits for the clean-up Job on the
// spoke for ever, even if the spoke never comes back. The controller
// hub.cleanup-timeout ends that wait. A cluster that is detached while its spoke
// is away would wait in the same way for our ManifestWorks, which only the spoke's
// work agent releases; the controller hub.detach ends that one.
//
// Writes, all on the hub:
//   - ManifestWorks addon-cluster-inventory-deploy-0 and
//     addon-cluster-inventory-pre-delete in the cluster namespaces (framework);
//   - status and finalizers of the ManagedClusterAddOns named cluster-inventory
//     (framework; the klusterlet, OCM's addon manager, the agent and the inventory
//     write other parts of the same status);
//   - the approval of CertificateSigningRequests of this addon (framework);
//   - Role and RoleBinding cluster-inventory-agent in the cluster namespaces;
//   - Events on ManagedClusterAddOns and ManagedClusters.
//
// Requeue: the framework resyncs every ten minutes; hub.cleanup-timeout comes
// back when the timeout will have passed.
//
// RBAC:
//   - clustermanagementaddons named cluster-inventory: list, watch;
//   - managedclusteraddons named cluster-inventory: list, watch, update, patch,
//     and get, to be granted; status: patch; finalizers: update;
//   - managedclusters: list, watch;
//   - manifestworks: list, watch, create, patch, delete;
//   - certificatesigningrequests: list, watch; approval: update; signer
//     kubernetes.io/kube-apiserver-client: approve;
//   - roles, rolebindings: get, list, watch, create, patch; a role can grant
//     only what the manager may do itself;
//   - events: create, patch.
package addon
