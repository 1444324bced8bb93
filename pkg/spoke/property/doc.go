// Package property is what the agent knows about SIG-Multicluster's
// ClusterProperty (about.k8s.io, KEP-2149): its versions, the fields the agent
// uses, what prevents a property from becoming a ClusterClaim, and which version a
// spoke serves.
//
// The objects are unstructured because the API's Go module cannot be imported.
package property
