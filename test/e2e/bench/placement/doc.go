// Package placement measures what an admin's ordinary day with Placements takes from clusters
// that stayed chosen, on a real Open Cluster Management with simulated clusters: how
// many of them lose their addon, their ClusterProfile, the references to it and the copies of
// their tokens, although they never left. And it measures how long these stay after a cluster
// was really removed.
//
//   - bench.go has the order of things and what is true between two of them;
//   - actions.go says what the admin does;
//   - removals.go removes clusters;
//   - slow.go makes Open Cluster Management's writes of decision slices slow, or fail;
//   - table.go prints.
//
// Nothing here asserts a time or a number.
package placement
