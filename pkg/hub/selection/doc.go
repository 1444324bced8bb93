// Package selection answers what is published where: which namespaces show which
// clusters.
package selection
