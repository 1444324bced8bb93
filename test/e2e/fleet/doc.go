// Package fleet runs a hub and its spokes on this machine, without containers:
// each cluster is a real etcd, kube-apiserver and kube-controller-manager, and
// Open Cluster Management joins them. Everything is a process of the calling
// user that listens on loopback alone, kept alive by one supervisor per fleet.
//
// A fleet owns <repository>/.fleet/<name> and nothing else: its kubeconfigs,
// data, logs and records of processes are there, and Down removes them all.
// Binaries that take minutes to build are cached outside the tree.
//
// With access it also runs cluster-proxy and managed-serviceaccount from their own
// charts, and is up when a request from the hub reaches every spoke through them.
// Their pods have networks of their own, which is all that takes root.
package fleet
