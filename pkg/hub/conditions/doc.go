// Package conditions writes the manager's own conditions on a cluster's ManagedClusterAddOn,
// all of them in one PATCH. The content of each comes from a Source, which is a separate
// concern.
//
// Writing an addon's status is the most expensive of all writes. docs/architecture.md says why,
// under "Conditions on the addon", and when the conditions are written therefore. Degraded follows
// from the other conditions, and from the agent's own (desired_degraded.go). Conditions that may be
// transient are held back for a while (Desired.HoldBack).
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
