// Package fleet runs a hub and its spokes on this machine, without containers:
// each cluster has a real etcd, kube-apiserver and kube-controller-manager, and
// Open Cluster Management joins them. Everything is a process of the calling
// user that listens on loopback only, kept running by one supervisor per fleet.
//
// A fleet writes to <repository>/.fleet/<name> and nowhere else: kubeconfigs,
// data, logs and the record of its processes. Down removes all of it. Programs
// that take minutes to build are cached outside the tree; see package programs.
//
// With access it also runs cluster-proxy and managed-serviceaccount from their own
// charts, and is up when a request from the hub reaches every spoke through them.
// Their pods have networks of their own; only that needs root.
//
// ARCHITECTURE.md in this folder describes the whole.
package fleet
