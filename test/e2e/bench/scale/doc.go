// Package scale measures the costs of a fleet of many clusters: on a hub without spokes,
// with simulated ManagedClusters, it does what operators do and records time, requests,
// bytes, CPU and memory. The writers are this addon, a raw writer that is the upper limit
// (it knows what to write and only writes), OCM's own ClusterProfile gate and
// managed-serviceaccount's own syncer of tokens.
//
//   - scale.go has the order of things, step.go how one of them is measured;
//   - population.go says which clusters there are, accounts.go which tokens they have;
//     package simulated makes them;
//   - writers.go switches between the programs that write;
//   - lifecycle.go, edits.go, state.go and tokens.go are the scenarios;
//   - package observe sees what is done, through one watch for each kind;
//   - package meter reads the costs, package report shows them.
//
// A scenario that fails or exceeds its limit is recorded as such and the run continues.
// Nothing here asserts a time.
package scale
