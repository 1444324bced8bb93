// Package kube holds what any Kubernetes controller needs but no library provides in this
// form: minimal patches with an optimistic lock, single entries of a condition list that
// others write too, waiting until the cache has seen the controller's own writes
// (Expectations), a source of requests that other code fills (Trigger), starting something
// once its APIs are served (LateStart), following a few objects outside the manager's cache
// (Follower), distinguishing objects that vanished with their CRD from deleted ones
// (Definitions), listing again after an outage in case etcd was restored
// (RelistAfterOutage), limiting fights with other writers (Brake), timing how long something
// has been so (Debounce), comparing names with patterns (MatchesAny), and keeping the bodies
// of requests out of logs. It knows nothing about Open Cluster Management or the inventory.
package kube
