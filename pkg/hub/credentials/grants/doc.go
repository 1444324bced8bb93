// Package grants grants the manager its rights on Secrets, and revokes them.
//
// The manager has no right on Secrets by itself. It binds itself to one of two ClusterRoles
// of the chart by a RoleBinding of the same name: token-source (get) in the namespaces of
// clusters whose tokens are read, and token-target (get, list, watch, create, patch,
// delete) in the namespaces that hold copies. A ValidatingAdmissionPolicy limits it to
// that.
//
// Accounts claim the grants they need; Ensure creates RoleBindings when they are used, and
// Reconcile removes unclaimed ones, in a target namespace only after every copy there
// is gone. The RoleBindings in target namespaces record where copies are: a manager that
// starts checks each of them.
//
// RBAC: rolebindings create; get, list, watch, patch, delete of the two names; clusterroles
// bind of the two names.
package grants
