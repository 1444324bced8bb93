// Package publish makes every ClusterProperty of the spoke a ClusterClaim of the
// same name, which a stock klusterlet reports to the hub.
//
// It owns the ClusterClaims that carry the mark (contract.LabelManagedBy), and of
// those spec.value, the mark and the owner reference to the property; labels,
// annotations and owner references of others on them stay. A claim without the
// mark is somebody else's and never touched. Nobody else writes marked claims;
// the API server's garbage collector deletes one whose property is gone, which
// this controller does sooner.
//
// Reads, from caches: ClusterProperties at the served version, ClusterClaims.
// Before it deletes the claim of a property that its cache does not know it asks the API
// server: an absence must be an answer. A spoke without the
// CustomResourceDefinition has no properties, so what is left of earlier claims
// goes; one whose properties cannot be read keeps its claims.
//
// Writes: one request for each change, with an optimistic lock, and none when
// nothing changed. A write that was begun is finished even when the controller
// is told to stop, so that nothing is under way once it has stopped.
//
// Requeue: only errors, conflicts among them, with a backoff of up to a minute.
//
// Rights on the spoke: clusterproperties.about.k8s.io get, list, watch;
// clusterclaims.cluster.open-cluster-management.io get, list, watch, create,
// patch, delete; customresourcedefinitions get, for the one of ClusterProperty.
package publish
