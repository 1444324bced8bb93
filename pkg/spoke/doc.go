// Package spoke is the agent that runs on every cluster of the inventory, and
// the hook that cleans up after it. It publishes ClusterProperties as
// ClusterClaims (publish), reports on the hub what became of them (report), and
// withdraws them when the addon is removed (cleanup).
//
// The process has one lasting manager and one session at a time inside it. The
// lasting manager serves the probes, watches the clean-up marker, and follows what a session
// is built for: which version of ClusterProperty the spoke serves (by discovery, triggered by a
// watch of its CustomResourceDefinition), and the hub kubeconfig's content. When either changes
// the session ends and the next begins; that is how a late, a removed or a changed
// API is followed without special cases in the controllers. Claims stay in between.
//
// An unreachable hub delays the report and nothing else. A spoke whose
// properties cannot be read keeps its claims.
//
// # Rights
//
// Everything the agent does, to be granted and nothing more. On the spoke,
// cluster wide:
//
//	about.k8s.io                          clusterproperties          get list watch
//	cluster.open-cluster-management.io    clusterclaims              get list watch create patch delete
//	apiextensions.k8s.io                  customresourcedefinitions  get list watch
//	                                      resourceName clusterproperties.about.k8s.io
//
// On the spoke, in the install namespace:
//
//	""   configmaps   get list watch patch   resourceName cluster-inventory-cleanup
//
// On the hub, in the cluster's namespace:
//
//	addon.open-cluster-management.io   managedclusteraddons          get list watch   resourceName cluster-inventory
//	addon.open-cluster-management.io   managedclusteraddons/status   patch            resourceName cluster-inventory
//
// The hook, with a service account of its own, on the spoke:
//
//	cluster.open-cluster-management.io   clusterclaims   list delete   cluster wide
//	""                                   configmaps      get patch     install namespace, resourceName cluster-inventory-cleanup
//
// Lists and watches of a single object select it by metadata.name, which is what
// the resourceName matches.
package spoke
