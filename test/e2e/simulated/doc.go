// Package simulated makes a hub see clusters that do not exist: each is a joined and
// available ManagedCluster with its namespace, the rights that Open Cluster Management gives
// it, a work agent that reports every ManifestWork of the addon as done, and, where wanted,
// an account with a token. Open Cluster Management and the addon treat them like others.
package simulated
