// Package installation holds the stories of how the addon is installed, configured, rolled
// out, guarded against OCM's own gate, kept available by several managers, and uninstalled.
// Its fleet, called "installation", is a stock Open Cluster Management with two spokes,
// without cluster-proxy and managed-serviceaccount.
package installation
