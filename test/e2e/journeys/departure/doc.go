// Package departure holds the stories of a spoke that others prepared, with a
// ClusterProperty CRD of its own, and that is lost in the end: it goes offline and is detached.
// Its fleet, called "departure", is a stock Open Cluster Management with that spoke alone, which
// is unusable afterwards.
package departure
