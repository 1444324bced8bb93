// Package programs builds the upstream programs that a fleet is made of, and
// caches them.
//
// Versions are pinned by the modules in ../tools: one build list for all but
// managed-serviceaccount, so that what they share is compiled once. A build is stored in the
// user's cache directory, in cluster-inventory-addon/<name>-<hash of all that
// decides its content>: every checkout of a user shares it, concurrent builders
// wait for each other by a lock, and builds unused for a month are removed.
package programs
