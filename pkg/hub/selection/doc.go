// Package selection holds the rule of what is published where: which namespaces see which
// clusters. Whatever acts on the rule imports this package or is given a function of it. It
// writes nothing itself.
//
// # The rule
//
// A profile for a cluster exists in a namespace if and only if
//
//  1. the cluster is in the inventory: it has the addon's ManagedClusterAddOn,
//     not being deleted, and its ManagedCluster is accepted and not being deleted;
//  2. the namespace has a bound ManagedClusterSetBinding, not labelled to keep from
//     publishing, whose set selects the cluster; the administrator may restrict this to
//     exclusive sets (Rule.ExclusiveSetsOnly);
//  3. if the namespace has Placements labelled for publishing, one of them decides
//     for the cluster. A namespace may require one.
//
// Its unit is a pair of namespace and cluster. The answer is Yes, No or Unknown, and only
// No may take anything away: a missing CRD or set, an invalid selector, a binding that OCM
// has not evaluated and a Placement without complete decisions are Unknown, for the pairs they
// concern and no others. A No that rests on Placements alone must last a second for the
// pair, since their decisions are written slice by slice, and a second after the last write
// of a slice, but at most ten. While slices cannot tell a cluster that moves between them from
// one that left, it must last for two minutes and be confirmed by a live read (rule.Settle). A
// Placement that is gone counts as deleted after ten seconds, and for as long after a start, no
// absence from decisions counts.
//
// # Objects that vanish with their CRD
//
// Deleting a CRD deletes its objects first, one by one, and restoring it creates the CRD
// first. Neither is a decision about an object. So a CRD that is gone, being deleted, or not
// the one from which the cache was filled counts as unserved. After the cache has caught up
// with a recreated CRD, existing objects count, and missing ones are Unknown until no object
// of any kind has been added for a minute, at most for half an hour (watch.Definitions).
// Since the cache of CRDs may lag, CRDs are read live: those that a No rests on, before
// anything is withdrawn, and that of Placements, before a profile is created because the last
// one of a namespace is gone. A No rests only on the kinds that can change it: without a
// binding that may publish, sets and clusters do not matter, and ClusterProfiles never do.
// After a start, CRDs count as recreated if a profile of ours is older than its cluster, or if
// they are much younger than another of them.
//
// # Parts
//
//   - Package rule is the rule, pure functions of an Observation, and of what is remembered and
//     was read live about an absence.
//   - Rule observes pairs in the manager's cache (observe.go), applies the rule to them (pair.go)
//     with what it remembers about absences (settling.go) and reads live (live.go), and tells
//     subscribers which pairs have changed (changes.go), as its caller tracks them. It also says
//     which clusters a Placement chooses (choice.go), which addons the install strategy creates
//     again (install.go) and which sets have a cluster (members.go). All slices of a Placement
//     are summarized once per change, so that the cost of a pair does not grow with the fleet.
//   - Package routes maps events to the pairs they concern, through indexes.
//
// Reads come from the manager's cache, which must hold what CacheOptions,
// inventory.CacheOptions and addon.CacheOptions specify. Live reads confirm withdrawals, created
// profiles and first copies, and while caches may lag, content as well (live.go). They are lists
// by name; only CRDs are read by get.
//
// # RBAC, cluster-wide
//
//	cluster.open-cluster-management.io  managedclusters, managedclustersets,
//	                                    managedclustersetbindings, placements,
//	                                    placementdecisions         list, watch
//	addon.open-cluster-management.io    managedclusteraddons       list, watch  (of the one name)
//	addon.open-cluster-management.io    clustermanagementaddons    list, watch  (of the one name)
//	multicluster.x-k8s.io               clusterprofiles            list, watch
//	(core)                              namespaces                 list, watch
//	apiextensions.k8s.io                customresourcedefinitions  get, list, watch
package selection
