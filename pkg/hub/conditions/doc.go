// Package conditions writes the manager's own conditions on a cluster's ManagedClusterAddOn,
// all of them in one PATCH. The content of each comes from a Source, which is a separate
// concern.
//
// Writing an addon's status is the most expensive of all writes: the addon API is stored as
// v1alpha1 and written as v1beta1, so each write, and each watch event of it, passes a
// conversion webhook, and OCM's addon manager reconciles the addon again. So:
//
//   - All conditions are written at birth, in one PATCH, once addon-framework has
//     made its own first writes, so that neither meets a conflict.
//   - A condition that is True has one text. A healthy change writes nothing.
//   - Degraded follows from the other conditions, and from the agent's own
//     (desired_degraded.go), and is written with them. Its text depends on the types and
//     reasons of those that are False. If the addon lacks Degraded, writing that it is
//     False waits for another write.
//   - Conditions that may be transient are held back for a while (Desired.HoldBack), and a
//     cluster is reconciled at most once a second, however often something changes.
//   - Few addons are written at a time, so that profiles and copies come first.
//
// # Ownership
//
// Of a ManagedClusterAddOn it owns the conditions of its sources' types, and Degraded,
// which neither OCM nor addon-framework writes. All others belong to OCM, addon-framework
// and the agent, so a JSON patch changes single entries of the list; it carries the
// resource version at which their positions are known. The first conditions of an addon
// are a merge patch, with the resource version, too: the addon may have no status yet. A
// conflict is not an error: the controller tries again in a second.
//
// # RBAC, cluster-wide
//
//	addon.open-cluster-management.io  managedclusteraddons         list, watch  (of the one name)
//	addon.open-cluster-management.io  managedclusteraddons/status  patch        (of the one name)
//	events.k8s.io                     events                       create
package conditions
