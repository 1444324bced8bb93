// Package release ends the waits of removals that nothing else ends: addon-framework waits
// forever for the clean-up Job, even if the spoke never reconnects or the Job cannot succeed
// there. Likewise a cluster that is deleted from the hub waits for this addon's ManifestWorks,
// which only the spoke's work agent releases. The controller hub.cleanup-timeout does it
// (reconciler.go), and decide.go decides when.
//
// Writes, all on the hub: finalizers of the ManagedClusterAddOns named cluster-inventory that are
// being deleted, and of this addon's deleted ManifestWorks; the deletion of those on hosting
// clusters; Events on ManagedClusterAddOns and ManagedClusters.
//
// Requeue: a cluster is requeued for the end of its timeout, and every five seconds while
// ManifestWorks of an unreachable spoke are not deleted yet.
//
// RBAC:
//   - managedclusteraddons named cluster-inventory: get, list, watch, patch; finalizers: update;
//   - managedclusters: list, watch;
//   - manifestworks of ownwork.Names: get, patch; with hosted agents, all: list, patch, delete;
//   - events: create.
package release
