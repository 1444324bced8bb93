// Package cleanup takes back what the agent published when the addon is removed.
//
// While an addon is being deleted its Deployment stays applied, so a hook that
// just deleted the claims would see the running agent make them again. Hook and agent
// therefore agree through a marker, the ConfigMap contract.CleanupMarkerName in the
// install namespace:
//
//  0. the marker is shipped, empty, with the agent, and goes with it;
//  1. the hook (agent cleanup, a Job) writes the UID of the ManagedClusterAddOn
//     into it;
//  2. the agent (this package's controller) stops publishing, waits until no
//     write of its own is under way, and records the same UID as stopped;
//  3. the hook waits for that, at most as long as it was told because no agent
//     may be running, deletes all marked ClusterClaims and ends when none remains.
//
// An agent that starts with a marker of its own addon's UID never publishes. A
// marker of another UID is left over from an earlier installation: the agent ignores
// it, the hook overwrites it. The hook leaves its request in place, which keeps a
// restarted agent quiet until the Deployment goes.
//
// The hook can be repeated at any point, deletes nothing without the mark, and
// ends well without a running agent, a marker or a ClusterClaim API. It fails
// while an agent it could not stop makes claims anew.
//
// Rights of the agent, in the install namespace, for the ConfigMap
// cluster-inventory-cleanup by resourceName: configmaps get, list, watch, patch. Rights of the
// hook: in the install namespace, for the same ConfigMap, configmaps get, patch; on the spoke
// clusterclaims.cluster.open-cluster-management.io list, delete.
package cleanup
