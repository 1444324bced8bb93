// Package uninstall takes the addon off every cluster before its manager goes:
// only the manager can take the agents off the spokes, so nothing of the chart may be
// deleted first. The chart runs it as a hook before "helm uninstall".
//
// It reads what is there, decides on the next step, takes it, and looks again,
// until it has twice found nothing left to do: OCM's addon manager may create an
// addon a moment after its strategy has become Manual.
//
// Steps, in this order:
//   - the install strategy becomes Manual, so that nothing is created again, and
//     the ClusterManagementAddOn says whether profiles stay;
//   - profiles that are to stay: wait until the manager has said so on every
//     cluster's addon; from then on it deletes none;
//   - the addons are deleted, and waited for: the manager has the spokes cleaned up;
//   - profiles that are to stay lose the mark. The manager of a later installation
//     deletes marked profiles of clusters that have no addon (yet), and adopts
//     unmarked ones, in place, once they are to be published;
//   - profiles that are not to stay: the marked ones are deleted. The manager does
//     the same; this is for when it does not run;
//   - the manager takes every copy of a token back, since no cluster has the addon any
//     more, and then its own RoleBindings: these are waited for, whether profiles stay
//     or not.
//
// Profiles stay without being told so where the manager found OCM's own
// ClusterProfile gate on, or could not tell: they may be somebody else's by now.
//
// RBAC: clustermanagementaddons named cluster-inventory get, patch;
// managedclusteraddons named cluster-inventory list, delete; clusterprofiles list, patch, delete;
// rolebindings list.
package uninstall
