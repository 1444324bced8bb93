// Package upstream finds out which of Open Cluster Management's own writers are on. Two
// writers of one object overwrite each other, so this addon leaves to a writer what it owns.
//
//   - RegistrationGate: OCM's registration controller writes ClusterProfiles, except for
//     their access providers. It deletes those that its own selection does not contain and
//     rewrites properties without their times. Its gate cannot be read from the
//     ClusterManager, which is not on the hub in hosted mode. But OCM's operator lets the
//     controller write clusterprofiles exactly when the gate is on, and that ClusterRole is
//     always on the hub.
//   - ProxyGate: cluster-proxy writes access providers when the arguments of its manager's
//     Deployment turn its gate on. Its RBAC does not depend on the gate.
//   - Syncer: managed-serviceaccount copies tokens into Secrets of the names that
//     this addon uses. Its chart installs a ClusterRole exactly when the gate is
//     on, regardless of the gate's name.
//
// decide.go interprets each indicator. "Unknown" counts as on, unless the administrator
// overrides it. A missing indicator keeps its last state for kube.AbsenceCounts, because it
// may just be replaced.
//
// It writes nothing. The first ClusterRole is read from the manager's cache; the other
// objects are followed separately, because their informers must not block the manager if a
// right is missing.
//
// # RBAC
//
//	rbac.authorization.k8s.io  clusterroles  list, watch  (of two names)
//	apps                       deployments   list, watch  (of one name, in cluster-proxy's namespace)
package upstream
