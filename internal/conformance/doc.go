// Package conformance checks the ClusterProfiles that a cluster manager publishes in one
// namespace of any hub. It only reads: CustomResourceDefinitions are not needed, discovery
// and the right to list ClusterProfiles there are.
//
// What is checked is what SIG-Multicluster's conformance suite checks (cluster-inventory-api,
// after v0.1.3), which is no Go module of its own yet that could be required here, and the
// stricter rules of ClusterProfile v1alpha2. Profiles that are written through v1alpha1 and
// break one of these make the writes of a consumer that uses v1alpha2 fail.
//
// check.go decides, observe.go reads, report.go prints.
package conformance
