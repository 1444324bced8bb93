// Package spoketest provides what tests of the spoke need: the shipped
// ClusterProperty CRD in the variants other installers use, properties, and the
// rights of the shipped manifests.
package spoketest
