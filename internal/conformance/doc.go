// Package conformance checks the ClusterProfiles that a cluster manager publishes in one
// namespace of any hub. It only reads. It needs discovery and the right to list
// ClusterProfiles there, but not CustomResourceDefinitions.
//
// It checks what SIG-Multicluster's conformance suite checks (cluster-inventory-api, after
// v0.1.3), which is not yet available as a Go module, and the stricter rules of
// ClusterProfile v1alpha2. Profiles that are written through v1alpha1 and break one of
// these make the writes of a consumer that uses v1alpha2 fail.
//
// check.go decides, observe.go reads, report.go prints.
package conformance
