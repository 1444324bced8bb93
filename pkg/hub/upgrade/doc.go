// Package upgrade brings the hub's CustomResourceDefinition AgentRevision up to the one of the
// chart, before an upgrade creates AgentRevisions with fields that the hub does not know yet:
// Helm installs CRDs, but never changes them. The chart runs it as a pre-upgrade hook, only
// where the hub's definition is older.
//
// Each definition has a number, in the annotation inventory.open-cluster-management.io/definition.
// A newer one is never replaced by an older one, so that going back loses no fields.
//
// It writes labels, annotations and spec of that one CRD in one PATCH, and never creates it.
// Definitions of SIG-Multicluster are not its business.
//
// RBAC: customresourcedefinitions named agentrevisions.inventory.open-cluster-management.io get,
// patch.
package upgrade
