// Package check says whether an installation is complete and its manager works, for "helm
// test". It runs with the manager's ServiceAccount: what it asks the hub about its own rights
// is then true of the manager, and it needs no further rights.
//
// check.go reads the hub, validate.go says what is missing. Nothing is written but access reviews and
// dry runs of what admission policies must refuse, which the hub answers and does not store.
//
// RBAC: as the manager; it uses
//   - clustermanagementaddons named cluster-inventory: list;
//   - the Lease of the leader election: get.
package check
