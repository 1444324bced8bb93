// Package access decides how clusters are reached: which access providers their profiles
// should have.
//
// # The providers
//
//   - open-cluster-management uses cluster-proxy's user server. It is
//     published for clusters with the ManagedClusterAddOn cluster-proxy, while the
//     hub has the ManagedProxyConfiguration with a user server, the Service, and
//     the Secret with its certificate. An addon that is not Available withdraws
//     nothing: that may be momentary, and each change restarts consumers.
//   - direct uses the cluster's API server itself. It is published for clusters
//     that the administrator names in ConfigMaps labelled contract.LabelDirectAccess
//     in the manager's namespace.
//
// Both derive only from objects of the hub's administrator, with one exception: an entry of
// such a ConfigMap may refer to ManagedCluster.spec, which a klusterlet may write.
//
// # Certificates
//
// The issuer of the user server's certificate is published, so that a renewed certificate
// changes nothing; if the Secret contains no issuer, the certificate itself is published
// (desired_certificates.go). After a change of the issuer both are published until the old one
// expires. The published certificates are stored in the ConfigMap contract.AccessStateName
// in the manager's namespace (state.go). They are never read back from profiles, which
// consumers may be able to write.
//
// # Unknown and absent
//
// Unknown is not absent: while something cannot be read, entries stay as they are. A hub
// that does not serve ManagedProxyConfigurations certainly has no cluster-proxy. While
// cluster-proxy's own feature gate for access providers is on, its entries belong to it.
//
// An object counts as absent once it has been missing for kube.AbsenceCounts (docs/architecture.md),
// a configuration whose API was gone after watch.RestoreTime, and both are unknown for
// kube.AbsenceCounts after the start. A change counts at once, and so do the
// administrator's ConfigMaps.
//
// # How it works
//
// The Resolver is a controller with a single request: it observes what all clusters share,
// resolves that into a snapshot (desired_snapshot.go), and announces changes. Of combines the
// snapshot with one cluster's own facts (desired.go), and Merge applies the decision to a profile's
// list. Package inventory writes the profiles; the Resolver writes only its ConfigMap, when
// the CA changes.
//
// Files named decide*.go and desired*.go are pure.
//
// Everything is read through followers, not the manager's cache: rights in cluster-proxy's
// namespace may be missing, and nothing must wait for them.
//
// Requeue: when a published certificate expires, when an absence counts, and after a failed
// write at doubling intervals up to a minute.
//
// # RBAC
//
//	addon.open-cluster-management.io    managedclusteraddons         list, watch  (of the name cluster-proxy)
//	proxy.open-cluster-management.io    managedproxyconfigurations   list, watch
//	apiextensions.k8s.io                customresourcedefinitions    list, watch
//	cluster.open-cluster-management.io  managedclusters              list, watch  (if an entry refers to one)
//
// in cluster-proxy's namespace, each for one name:
//
//	(core)  services, secrets  list, watch
//
// in the manager's namespace:
//
//	(core)  configmaps  list, watch, create, and patch of one name
package access
