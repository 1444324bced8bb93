// Package access says how clusters are reached: which access providers their
// profiles are to have.
//
// # The providers
//
//   - open-cluster-management leads through cluster-proxy's user server. It is
//     published for a cluster that has the ManagedClusterAddOn cluster-proxy, while
//     the hub has the ManagedProxyConfiguration with a user server, the Service and
//     the Secret with its certificate. That the addon is not Available withdraws
//     nothing: it may be so for a moment, and each change restarts consumers.
//   - direct leads to the cluster's API server itself. It is published for clusters
//     that the administrator names in ConfigMaps labelled contract.LabelDirectAccess
//     in the manager's namespace.
//
// Both come from objects of the hub's administrator only, but for one thing: an
// entry of such a ConfigMap may say that ManagedCluster.spec is to be believed,
// which a klusterlet may write.
//
// # Certificates
//
// Published is who issued the user server's certificate, so that a new one
// changes nothing. When the issuer itself is another, both are published until
// the old one expires. What was published is remembered in the ConfigMap
// contract.AccessStateName in the manager's namespace, never read back from
// profiles: a consumer may be able to write those.
//
// # What is not known
//
// Unknown is not absent: while something cannot be read, entries stay as they
// are. A hub without ManagedProxyConfigurations is known not to have
// cluster-proxy. While cluster-proxy's own feature gate for access providers is on
// its entries are its own.
//
// # Who writes what
//
// Nothing here writes profiles: Watch.Of says what each cluster's entries are to
// be and Merge puts them into a list, for the one that does. Watch writes the
// ConfigMap that remembers, when the CA changes.
//
// Everything is read through followers of its own, not the manager's cache: rights
// on cluster-proxy's namespace may be missing, and then nobody must wait for them.
// A refused watch is tried again at intervals up to half a minute.
//
// # RBAC
//
//	addon.open-cluster-management.io    managedclusteraddons         list, watch  (of the name cluster-proxy)
//	proxy.open-cluster-management.io    managedproxyconfigurations   list, watch
//	apiextensions.k8s.io                customresourcedefinitions    list, watch
//	cluster.open-cluster-management.io  managedclusters              list, watch  (only watched for direct access as they say)
//
// in cluster-proxy's namespace, each of one name:
//
//	(core)  services, secrets  list, watch
//
// in the manager's namespace:
//
//	(core)  configmaps  list, watch, create, and patch of one name
package access
