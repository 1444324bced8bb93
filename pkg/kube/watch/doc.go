// Package watch decides what a controller watches, since when, and what an absence means: a
// source of requests that other code fills (Trigger), starting something once its kinds are
// served (LateStart), following a few objects outside the manager's cache (Follower),
// distinguishing objects that vanished with their CRD from deleted ones (Definitions), and
// listing again after an outage in case etcd was restored (RelistAfterOutage). It knows
// nothing about Open Cluster Management or the inventory.
package watch
