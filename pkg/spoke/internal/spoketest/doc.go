// Package spoketest provides what tests of the spoke need: the shipped
// ClusterProperty CRD in the variants other installers use, properties, and
// kubeconfig files.
package spoketest
