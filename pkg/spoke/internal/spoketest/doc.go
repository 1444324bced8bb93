// Package spoketest makes what tests of the spoke need: the shipped
// ClusterProperty definition in the variants other installers have, properties, and
// kubeconfig files.
package spoketest
