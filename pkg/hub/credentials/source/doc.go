// Package source knows the ManagedServiceAccounts that are labelled to be copied, and which
// part of their tokens' Secrets may be copied.
//
// An account's status says which Secret holds its token and when that changed. The Secret of
// that name in the cluster's namespace is then read live and validated (validate.go): the spoke's
// agent writes both, so neither is trusted beyond those rules. Only digests of tokens are
// remembered.
//
// Times in an account's status have a resolution of one second, so a new token is read once
// more two seconds later: another may have been issued within the same second. Every token
// is also read every four to six minutes, which finds Secrets that were changed or deleted
// without a change of the status. A missing Secret is read again after ten seconds before
// it counts as gone, because its agent recreates it.
//
// RBAC: managedserviceaccounts list and watch, cluster-wide; secrets get in the
// namespaces of clusters, by the RoleBindings of package grants. It writes nothing.
package source
