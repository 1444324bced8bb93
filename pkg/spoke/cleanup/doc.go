// Package cleanup deletes the published ClusterClaims when the addon is removed.
//
// While an addon is being deleted, its Deployment stays applied, so the running
// agent would recreate claims that a hook deletes. Hook and agent therefore
// coordinate through a marker, the ConfigMap contract.CleanupMarkerName in the
// install namespace:
//
//  0. The marker is shipped with the agent, empty, and deleted with it.
//  1. The hook ("agent cleanup", a Job) writes the UID of the ManagedClusterAddOn
//     to it.
//  2. The agent (this package's controller) stops publishing, waits until none of
//     its writes is in progress, and records the same UID as stopped.
//  3. The hook waits for that, for a limited time because there may be no running
//     agent. Then it deletes all marked ClusterClaims until none is left.
//
// Each session of an agent reads the marker live before it publishes, and the agent never publishes
// again once its own addon's UID is there. Another UID is left over from an earlier installation:
// the agent ignores it, the hook overwrites it. The hook leaves its request in the marker, so that a
// restarted agent does not publish before its Deployment is deleted.
//
// The hook can be repeated at any point, deletes nothing without the mark, and succeeds
// without a running agent, a marker or a ClusterClaim API. It fails as long as an agent
// that it could not stop recreates claims.
//
// Rights of the agent, in the install namespace, for the ConfigMap
// cluster-inventory-cleanup by resourceName: configmaps list, watch, patch.
// Rights of the hook: in the install namespace, for the same ConfigMap, configmaps
// list, patch; on the spoke clusterclaims.cluster.open-cluster-management.io list,
// delete.
package cleanup
