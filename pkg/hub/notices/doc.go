// Package notices tells consumers in their own namespaces what they lack and why: by events on
// their ClusterProfiles, ManagedClusterSetBindings and Placements. The condition of a
// ManagedClusterAddOn says the same to the administrators of the hub, but it is in the cluster's
// namespace, which consumers may not read.
//
// The same Reporter tells the administrators of the hub, by events on a ManagedCluster, what
// concerns a cluster in all namespaces and is no problem of its addon.
//
// Other packages of the hub decide what to report. A Reporter creates the events, as seldom as
// possible, because every event is a write:
//
//   - at most one event for each object and reason in half a minute (Interval);
//   - the same again only after fifty minutes (kube.EventPeriod), because API servers forget events after
//     an hour;
//   - nothing after a restart if nothing has changed: an event's name follows from what it says
//     and from the period, so the API server refuses to create it a second time;
//   - in a bounded number of namespaces per second, so that a start on a hub where everything is
//     wrong causes no burst.
//
// The Controller, hub.notices, runs the Reporters of inventory and credentials (Reports). Namespaces
// do not wait for each other. Package decisions reports when it reconciles a Placement.
//
// Desired folds what is wrong with many clusters of a namespace: if more than MaxProfiles
// profiles lack something for one reason, one event on their set binding says so for all, so
// that ten thousand refused tokens are one event and not ten thousand.
//
// # RBAC
//
//	events.k8s.io                       events                     create
//	multicluster.x-k8s.io               clusterprofiles            list, watch
//	cluster.open-cluster-management.io  managedclusters            list, watch
//	cluster.open-cluster-management.io  managedclustersetbindings  list, watch
//	cluster.open-cluster-management.io  placements                 list, watch
package notices
