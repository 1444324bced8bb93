// Package report writes the condition PropertiesPublished of the cluster's own
// ManagedClusterAddOn on the hub: how many ClusterProperties are published, which are not,
// and why.
//
// The klusterlet reports a limited number of custom claims and mentions the others only in
// its log. The report therefore predicts which ones it cuts off, in the klusterlet's own
// order and over all claims of the spoke, including those of other clients. It compares
// properties with claims instead of relying on what the publisher has done, so that it is
// also correct after a restart.
//
// It owns that one entry of status.conditions. The klusterlet, addon-framework,
// Open Cluster Management's addon manager and this addon's hub manager write other
// entries of the list; a patch carries them as they were read, under an optimistic
// lock. The entry is written only when a count, a name or a reason changes, never
// because a value was edited. An addon object that does not exist, or has another
// UID, is left alone.
//
// Reads, from caches: ClusterProperties and ClusterClaims of the spoke, the one
// ManagedClusterAddOn of the hub. Events within collectTime are reported together,
// and a missing claim counts as published until lateTime has passed.
//
// Requeue: on errors, including conflicts and an unreachable hub, with a backoff of
// up to a minute; until the cache shows the last report, or the write with which it
// conflicted (kube.Expectations); and when a missing claim becomes late. The hub's cache may take
// any length of time to sync; nothing else waits for it.
//
// A second controller, spoke.events, tells the owners of properties, who may not read the
// hub, by events on the spoke: one for each property that is not published, or not with its
// value, and each reason, repeated every kube.EventPeriod while that lasts. Their names
// follow from property, reason and period, so that an agent that restarts repeats nothing. It
// creates at most 20 in a minute, for all sessions of the process; what it remembers of them
// is bounded by that. If the spoke refuses one, it says so once in the log, pauses, and
// continues; publishing and reporting do not wait for it.
//
// Rights on the hub, in the cluster's namespace, for the ManagedClusterAddOn
// cluster-inventory by resourceName: managedclusteraddons list, watch;
// managedclusteraddons/status patch. On the spoke: clusterproperties and
// clusterclaims list, watch; events.events.k8s.io create.
package report
