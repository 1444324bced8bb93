// Package contract holds what the hub manager, the spoke agent, their users and
// other components of a fleet agree on: names, label and annotation keys,
// condition types and reasons. Every value appears in stored objects or in
// somebody's manifests, so changing one breaks them.
//
// It imports API types only and contains no behaviour.
package contract
