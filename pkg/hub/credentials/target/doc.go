// Package target keeps the copies of tokens: one Secret per account and namespace,
// named "<cluster>-<account>", with the keys token and ca.crt.
//
// Followers watch the metadata of the copies in each target namespace. The Ledger
// joins what they show with what this process wrote or read, of which it keeps a
// digest. A copy at the version this process knows is trusted and patched or deleted
// without being read; any other is read first. Copies makes all writes.
//
// A Secret that does not say by its labels, annotations and name that it is a copy
// is foreign: it is left alone. One that managed-serviceaccount's own syncer has left behind
// is taken over in place, by one patch, once everything it says has been verified
// (judge_upstreams.go). As long as that syncer is on, what it has taken over is its own.
// A copy that somebody else keeps changing is put right at a bounded rate (kube.Brake).
// Copies are deleted by UID, whatever their
// finalizers, because whoever can read one while it is held must not.
//
// RBAC: secrets get, list, watch, create, patch and delete in target namespaces, by
// the RoleBindings of package grants.
package target
