// Package spoketest provides what tests of the spoke share: the shipped
// ClusterProperty CRD in the variants that other installers use, properties, and
// the rights of the shipped manifests.
package spoketest
