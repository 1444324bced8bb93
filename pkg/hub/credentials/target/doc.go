// Package target maintains the copies of tokens: one Secret per account and namespace,
// named "<cluster>-<account>", with the keys token and ca.crt.
//
// Followers watch the metadata of the copies in each target namespace. The Ledger joins what
// they show with what this process wrote or read, and keeps a digest of it. A copy at the
// version this process knows is trusted and patched or deleted without being read, unless a
// finalizer holds it; any other is read first. Copies makes all writes.
//
// A Secret is a copy if its labels, annotations and name say so, if this process wrote it and
// one of these marks is left, or if the API server's record of writers names the manager and
// its one owner is a ClusterProfile of the cluster's name. Any other is foreign: it is left
// alone. One that managed-serviceaccount's own syncer has left behind is taken over in place,
// by one patch, once its whole content has been verified (validate_upstreams.go). As long as that
// syncer is on, the Secrets that it has taken over are its own. A contested copy is repaired
// at a bounded rate (kube.Brake). Copies are deleted by UID, regardless of their finalizers,
// because otherwise they could still be read.
//
// RBAC: secrets get, list, watch, create, patch and delete in target namespaces, by
// the RoleBindings of package grants.
package target
