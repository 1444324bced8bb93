// Package contract holds the names, label and annotation keys, condition types and reasons
// that the hub manager, the spoke agent, their users and other components of a fleet share.
// Every value appears in stored objects or in users' manifests, so changing one breaks
// them.
//
// It imports API types only and contains no behaviour.
package contract
