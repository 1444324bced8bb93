// Package spoke is the agent that runs on every cluster of the inventory, and
// the hook that cleans up after it. It publishes ClusterProperties as
// ClusterClaims (publish), reports the outcome on the hub and, by
// events, to the properties' owners (report), and deletes
// the claims when the addon is removed (cleanup).
//
// The process has one manager for its whole lifetime, and in it one session at a time, with
// its own manager. The outer manager serves the probes, watches the clean-up marker, and
// follows the two things that a session depends on: the version of ClusterProperty that the
// spoke serves (by discovery, triggered by a watch of its CustomResourceDefinition), and the
// hub's kubeconfig with the certificate or token it refers to. When either changes, the
// session ends and a new one starts. So an API that is installed late, removed or changed
// needs no special cases in the controllers. Claims stay in between.
//
// An unreachable hub delays the report and nothing else. If the hub's kubeconfig becomes
// unusable, the agent reports that with the previous one. If there is none, because the
// agent has restarted since, it publishes, reports nothing and is not ready. If the
// properties cannot be read, the claims stay. After an outage of either API server, the
// caches list again, because its etcd may have been restored from an older snapshot.
//
// The agent may run on another cluster than the spoke (hosted.go). It then waits until it
// has a working kubeconfig of the spoke, and reports its problems on the hub.
//
// # Rights
//
// The agent needs exactly these rights. On the spoke, cluster-wide:
//
//	about.k8s.io                          clusterproperties          get list watch
//	cluster.open-cluster-management.io    clusterclaims              list watch create patch delete
//	apiextensions.k8s.io                  customresourcedefinitions  get list watch
//	                                      resourceName clusterproperties.about.k8s.io
//	events.k8s.io                         events                     create
//
// On the spoke, in the install namespace:
//
//	""   configmaps   list watch patch   resourceName cluster-inventory-cleanup
//
// On the hub, in the cluster's namespace:
//
//	addon.open-cluster-management.io   managedclusteraddons          list watch   resourceName cluster-inventory
//	addon.open-cluster-management.io   managedclusteraddons/status   patch        resourceName cluster-inventory
//
// The hook, with its own service account, on the spoke:
//
//	cluster.open-cluster-management.io   clusterclaims   list delete   cluster-wide
//	""                                   configmaps      list patch    resourceName cluster-inventory-cleanup
//	                                                                   in the install namespace
//
// Lists and watches of a single object select it by metadata.name, which a rule
// with resourceNames permits.
package spoke
