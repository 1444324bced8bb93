// Package consumers holds programs that use the inventory as consumers do: they run on the
// hub with a service account of their own namespace, and reach clusters with nothing but
// the ClusterProfiles there and their own provider file. The journeys run them as Pods; the
// tests here run them against plain API servers.
//
//	connect     from a ClusterProfile to a configuration, by SIG-Multicluster's library
//	lister      lists the namespaces of every cluster on which it has an account, once
//	reconciler  a controller on multicluster-runtime over all clusters
//	greeter     says hello and ends, for Jobs on the clusters
package consumers
