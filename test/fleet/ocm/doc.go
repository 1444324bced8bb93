// Package ocm describes Open Cluster Management on the hub and the spokes of a
// fleet: its processes with their flags, and its manifests as its operators
// would apply them with every feature gate off. It starts and applies nothing.
package ocm
