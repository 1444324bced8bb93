// Package kube reads and writes objects as any Kubernetes controller needs it but no library
// provides in this form: minimal patches with an optimistic lock, single entries of a
// condition list that others write too, waiting until the cache has seen the controller's own
// writes (Expectations), predicates of events, limiting contention with other writers (Brake),
// timing how long something has been so (Debounce),
// comparing names with patterns (MatchesAny), and keeping the bodies of requests out of logs.
// It knows nothing about Open Cluster Management or the inventory.
package kube
