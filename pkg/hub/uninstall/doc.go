// Package uninstall removes the addon from every cluster before the manager is
// deleted: only the manager can remove the agents from the spokes, so nothing of
// the chart may be deleted first. The chart runs it as a pre-delete hook of
// "helm uninstall".
//
// It observes the hub, takes the next step and starts over, until it finds nothing
// left to do twice in a row: OCM's addon manager may create an addon a moment
// after the install strategy has become Manual.
//
// The steps, in this order:
//   - Set the install strategy to Manual, so that no addon is created again, and
//     write to the ClusterManagementAddOn whether profiles are kept.
//   - If profiles are kept, wait until the manager has confirmed it on every
//     cluster's addon, or on some cluster's half a minute ago; from then on it deletes none.
//   - Delete the addons and wait until they are gone; meanwhile the manager cleans
//     up the spokes.
//   - If profiles are kept, remove their mark. The manager of a later installation
//     deletes marked profiles of clusters that have no addon (yet), and adopts
//     unmarked ones in place once they are to be published.
//   - Otherwise delete the marked profiles. The manager does so, too; this step is for a
//     manager that does not run.
//   - Wait until the manager has removed every copy of a token, because no cluster has the
//     addon any more, and then its own RoleBindings. This happens whether profiles are kept
//     or not. In credentials mode disabled the manager removes neither: if there is one, the
//     hook fails and says where.
//   - Unless profiles are kept, delete the marked PlacementDecisions of SIG-Multicluster,
//     which then refer to no profile. Otherwise they stay as they are, and a later
//     installation continues with them.
//   - Delete the AgentRevisions, which Helm keeps for clusters that are not upgraded yet, and
//     the Role and RoleBinding of each, by which agents may run its image.
//
// Profiles are also kept if OCM's own ClusterProfile gate is on, or that cannot be
// determined: they may belong to OCM's controller by now. The hook reads that from the hub,
// as the manager does, because a spoke may write its addon's conditions.
//
// Tools that do not run Helm's hooks apply the hook's Job together with everything else. They
// also apply the ConfigMap cluster-inventory-applied-without-hooks, which tools that run hooks
// delete at once. While it exists, the hook ends without doing anything.
//
// A hub may have more clusters and profiles than fit into the hook's memory, so it counts
// and deletes them page by page, and keeps none in memory.
//
// Whatever fails is tried again until the timeout, except where that cannot help: the hook
// lacks a right, or an API is missing.
//
// RBAC: clustermanagementaddons named cluster-inventory get, patch;
// managedclusteraddons named cluster-inventory list, delete; clusterprofiles list,
// patch, delete; placementdecisions.multicluster.x-k8s.io list, delete; rolebindings of the
// manager's two names list; agentrevisions list, delete; the ClusterRole of OCM's registration
// controller get; in the release's namespace roles and rolebindings list, delete, and that
// ConfigMap get.
package uninstall
