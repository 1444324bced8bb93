// Package controlplane describes the control plane of one cluster: etcd,
// kube-apiserver and kube-controller-manager with their flags, and the
// certificates and kubeconfigs they run with. It starts nothing.
package controlplane
