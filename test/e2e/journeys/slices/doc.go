// Package slices holds the story of a fleet whose Placements need several slices for their
// decisions: most of its clusters are simulated, and its one real spoke is where a slice
// ends. Its fleet, called "slices", is a stock Open Cluster Management; the simulated clusters
// go with it.
package slices
