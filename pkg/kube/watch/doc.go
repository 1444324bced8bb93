// Package watch is how controllers watch, and what an absence means: a source of requests that
// other code fills (Trigger), starting something once its kinds are served (LateStart, which
// asks Discovery), following a few objects outside the manager's cache (Follower),
// distinguishing objects that vanished with their CRD from deleted ones (Definitions), and
// listing again after an outage in case etcd was restored (RelistAfterOutage, NewWatchClient). It
// knows nothing about Open Cluster Management or the inventory, and writes nothing.
//
// Definitions and LateStart read live: CustomResourceDefinitions by get and list, and the
// discovery of single API versions.
package watch
