// Package property is what the agent knows of SIG-Multicluster's ClusterProperty
// (about.k8s.io, KEP-2149): its versions, what of an object matters here, what
// keeps one from becoming a ClusterClaim, and what of the API a spoke serves.
//
// The objects are unstructured because the API's own module cannot be required.
package property
