// Package credentials copies tokens of ManagedServiceAccounts to consumers: to
// where the inventory publishes the cluster, and the account wants to be.
//
// # The rule
//
// An account's token is copied into a namespace, as the Secret
// "<cluster>-<account>" with the keys token and ca.crt, if and only if
//
//  1. the account is labelled to be copied and not being deleted;
//  2. it names the namespace by its annotation, or names none and the manager is
//     told not to require that;
//  3. the rule of what is published where (Selector) entitles the namespace to the
//     cluster, and our ClusterProfile stands there and is not being deleted. A
//     ClusterProfile alone proves nothing: who may create one may forge every label
//     and owner of it;
//  4. no other account would be copied there under the same name;
//  5. the account's status names the Secret of the account's own name, that Secret
//     was made by managed-serviceaccount for this very account, and it holds a
//     token that has not expired. The spoke's agent writes status and Secret, so
//     neither is believed further than that.
//
// What is positively not so takes the copy away at once; what cannot be told, as
// an API server's error or a Placement not decided yet, makes nothing new and deletes
// nothing. A copy is deleted by its UID, whatever finalizers it has. A Secret of a
// copy's name that is no copy (by labels, annotations and name) is never touched.
//
// # Rights
//
// The manager has no right on Secrets by itself. It gives itself one of two
// ClusterRoles of the chart by a RoleBinding of a fixed name: get, in the namespaces
// of clusters whose tokens are to be read; get, list, watch, create, patch and
// delete, in the namespaces that hold copies. It removes both when they are
// not needed any more. A ValidatingAdmissionPolicy holds it to that. The
// RoleBindings in target namespaces are the record of where copies are: a manager
// that starts looks into each of them.
//
// # How a token moves
//
// Whether a token changed is read from its account's status, by a watch; then that
// one Secret is read, past every cache, and one PATCH per target written. Times in that
// status have a resolution of a second, so a token just made is read once more two seconds
// later: another may have been made within the same second. A rotation that the status never
// tells of is found by the check that reads every token every four to six minutes, as is a
// Secret that was deleted or changed behind its account's back. One that is not there is looked
// for once more after a second, because its agent makes it anew. Copies are watched as metadata only; one whose
// version is not the one written last is read and put right. Of tokens only digests
// are remembered, and nothing of them is logged at any verbosity, nor repeated from an API
// server's message.
//
// # Controllers
//
//   - hub.credentials: one account and all its copies. It takes back before it gives. What
//     has copies already goes first, so that a revocation does not wait for a
//     thousand first copies.
//   - hub.credentials-rights: removes RoleBindings that are not needed any more.
//   - hub.credentials-status: the condition CredentialsSynced.
//   - hub.credentials-start: follows ManagedServiceAccounts once the hub serves them.
//
// # RBAC
//
//	cluster-wide:
//	authentication.open-cluster-management.io  managedserviceaccounts  list, watch
//	multicluster.x-k8s.io               clusterprofiles          list, watch
//	addon.open-cluster-management.io    managedclusteraddons     list, watch  (of the one name)
//	addon.open-cluster-management.io    managedclusteraddons/status  patch    (of the one name)
//	apiextensions.k8s.io                customresourcedefinitions  list, watch
//	rbac.authorization.k8s.io           clusterroles             list, watch  (upstream's syncer's)
//	rbac.authorization.k8s.io           clusterroles             bind         (the two)
//	rbac.authorization.k8s.io           rolebindings             get, list, watch, create, patch; delete (of the two names)
//
//	by RoleBinding:
//	(core)                              secrets                  get          (clusters' namespaces)
//	(core)                              secrets                  get, list, watch, create, patch, delete  (target namespaces)
package credentials
