// Package hub is the process that runs on the hub: its command line, its health probes, its
// controller-runtime manager, and the list of its controllers. The controllers are in the
// concern folders below, and are wired here.
//
// The manager is built once the hub serves Open Cluster Management's own kinds
// (startup.go). Until then liveness succeeds and readiness says what is missing.
//
// Writes: the Lease of the leader election (by controller-runtime). RBAC:
//
//	apiextensions.k8s.io  customresourcedefinitions  list, watch  (while waiting)
//	coordination.k8s.io   leases                     get, create, update  (in the manager's namespace)
package hub
