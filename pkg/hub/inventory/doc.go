// Package inventory keeps the ClusterProfiles: which exist, and what they say.
//
// # The rule
//
// A profile for a cluster exists in a namespace if and only if
//
//  1. the cluster is in the inventory: it has the addon's ManagedClusterAddOn,
//     not being deleted, and its ManagedCluster is accepted and not being
//     deleted;
//  2. the namespace has a bound ManagedClusterSetBinding, not labelled to keep
//     from publishing, whose set selects the cluster;
//  3. if the namespace has Placements labelled for publishing, one of them
//     decides for the cluster. A namespace may require one.
//
// The unit of work is one pair of namespace and cluster, which is the profile's
// own name. The rule's answer is yes, no or unknown; only a positive no deletes,
// and only what this addon created or adopted. While the answer is unknown a
// profile of ours stays; its content is kept true as long as the cluster is in
// the inventory, and nothing is created, adopted or deleted. An absence that
// rests on Placements alone must last a second, since their decisions are
// written slice by slice.
//
// # Who writes what
//
// Of a ClusterProfile this addon owns the labels that name manager, cluster, set and
// the mark, the labels it copied and the annotation that lists them,
// spec.displayName, status.version, status.properties as a whole, the
// conditions ControlPlaneHealthy and Joined, and of status.accessProviders the
// entries that package access decides about. Everything else belongs to others
// and is never touched. Of a ManagedClusterAddOn it owns the condition
// ProfilesSynced. Every write is the smallest that does it, carries an
// optimistic lock, and is left out when nothing changes.
//
// # Controllers
//
//   - hub.inventory: observe the caches, decide, apply, prune. It starts when
//     all its CRDs are served, and rests while the guard says that upstream
//     writes the profiles.
//   - hub.inventory-status: the condition, from the outcomes of all pairs of a
//     cluster, never from some of them.
//   - hub.inventory-report: events on set bindings and Placements that name the
//     clusters whose profile is withheld and say why, at most one in half a
//     minute about each object.
//   - hub.inventory-start: starts the first.
//
// Reads come from the manager's cache, which must hold what CacheOptions says.
// Pairs are looked at when something they depend on changes; again after a
// refused write, at intervals from 20 ms doubling to a minute; and after a
// second while an absence settles. Conflicts are returned, not retried.
//
// # RBAC, cluster-wide
//
//	cluster.open-cluster-management.io  managedclusters, managedclustersets,
//	                                    managedclustersetbindings, placements,
//	                                    placementdecisions       list, watch
//	addon.open-cluster-management.io    managedclusteraddons     list, watch  (of the one name)
//	addon.open-cluster-management.io    managedclusteraddons/status  patch    (of the one name)
//	multicluster.x-k8s.io               clusterprofiles          list, watch, create, patch, delete
//	multicluster.x-k8s.io               clusterprofiles/status   patch
//	(core)                              namespaces               list, watch
//	apiextensions.k8s.io                customresourcedefinitions  list, watch
//	events.k8s.io                       events                   create
package inventory
