// Package spoketest provides what tests of the spoke share: the shipped
// ClusterProperty definition in the variants other installers have, properties, and
// the rights of the shipped manifests.
package spoketest
