// Package contract is what the hub manager, the spoke agent, their users and
// other components of a fleet agree on: names, label and annotation keys,
// condition types and reasons. Whatever is here is on the wire or in somebody's
// manifest; changing a value breaks them.
//
// It imports API types only and contains no behaviour.
package contract
