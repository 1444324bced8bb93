// Package grants gives the manager its rights on Secrets, and takes them back.
//
// The manager has no right on Secrets by itself. It binds itself to one of two
// ClusterRoles of the chart by a RoleBinding of the same name: token-source (get)
// in the namespaces of clusters whose tokens are to be read, and token-target (get,
// list, watch, create, patch, delete) in the namespaces that hold copies. A
// ValidatingAdmissionPolicy holds it to that.
//
// Accounts claim the grants they need; the Grants make RoleBindings when they are
// used, and the Reconciler removes one that nobody claims any more, in a target
// namespace only after every copy there is gone. The RoleBindings in target
// namespaces are the record of where copies are: a manager that starts looks into
// each of them.
//
// RBAC: rolebindings get, list, watch, create, patch; delete of the two names;
// clusterroles bind of the two names.
package grants
