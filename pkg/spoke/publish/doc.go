// Package publish creates a ClusterClaim of the same name for every
// ClusterProperty of the spoke. A stock klusterlet reports the claims to the hub.
//
// It owns the ClusterClaims that carry the mark (contract.LabelManagedBy). On them it owns
// spec.value, the mark and the owner reference to the property, and keeps the labels,
// annotations and owner references of others. A claim without the mark belongs to another
// client and is never touched. No other client writes marked claims; the garbage collector
// deletes a claim whose property is gone, but this controller does so sooner.
//
// Reads, from caches: ClusterProperties at the served version, ClusterClaims. Before it
// deletes the claim of a property that is missing from its cache, it asks the API server
// whether the property is really gone. On a spoke without the CustomResourceDefinition
// there are no properties, so earlier claims are deleted; where properties cannot be read,
// claims stay.
//
// Writes: one request for each change, with an optimistic lock, and none when nothing
// changed. A write that has started is finished even when the controller is stopped, so
// that none is in progress afterwards. A claim that another client keeps changing is
// repaired ten times at once and then every ten seconds (kube.Brake).
//
// Requeue: only errors, conflicts among them, with a backoff of up to a minute.
//
// Rights on the spoke: clusterproperties.about.k8s.io get, list, watch;
// clusterclaims.cluster.open-cluster-management.io list, watch, create, patch,
// delete; customresourcedefinitions get, for the one of ClusterProperty.
package publish
