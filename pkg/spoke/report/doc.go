// Package report says on the hub, in the condition PropertiesPublished of the
// cluster's own ManagedClusterAddOn, how many ClusterProperties are published,
// which are not, and why.
//
// The klusterlet reports only so many custom claims and says nothing of the
// rest but in its log, so the report predicts the cut: with the klusterlet's own order, over
// all claims of the spoke, whoever made them. It compares properties with claims itself
// rather than being told what was done: what it says holds after a restart too.
//
// It owns that one entry of status.conditions. The klusterlet,
// addon-framework, Open Cluster Management's addon manager and this addon's hub
// manager write others in the same list; a patch carries them as they were read,
// under an optimistic lock. It is written only when it says something else: a
// count, a name or a reason, never because a value was edited. An addon object
// that is absent, or has another UID, is left alone.
//
// Reads, from caches: ClusterProperties and ClusterClaims of the spoke, the one
// ManagedClusterAddOn of the hub. Events within settleTime are reported
// together, and a claim that has not followed its property yet counts as
// published until lateTime has passed.
//
// Requeue: errors, conflicts and an unreachable hub among them, with a backoff
// of up to a minute; and when a claim that is awaited would be late. The hub's
// cache may take forever; nothing else waits for it.
//
// Rights on the hub, in the cluster's namespace, for the ManagedClusterAddOn
// cluster-inventory by resourceName: managedclusteraddons get, list, watch;
// managedclusteraddons/status patch. On the spoke: clusterproperties and
// clusterclaims list, watch.
package report
