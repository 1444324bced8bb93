// Package inventory holds the stories of the addon and of the profiles it publishes:
// clusters that come and go, placements, properties, and what is written. Its fleet, called
// "inventory", is a stock Open Cluster Management with two spokes, without cluster-proxy and
// managed-serviceaccount.
package inventory
