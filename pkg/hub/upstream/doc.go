// Package upstream tells whether Open Cluster Management's own ClusterProfile
// controller is running on this hub. Two writers of the same profiles fight:
// that controller deletes what its own selection does not contain and rewrites
// properties without their times.
//
// The gate cannot be asked directly: the ClusterManager object is not on the hub
// in hosted mode. But its operator gives the registration controller rights on
// clusterprofiles exactly when the gate is on, and that ClusterRole is always on
// the hub, so it is the answer. What cannot be told counts as on.
//
// It reads one ClusterRole, through the manager's cache, and writes nothing.
//
// RBAC: rbac.authorization.k8s.io/clusterroles get, list, watch, on that one
// name only.
package upstream
