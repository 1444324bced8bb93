// Package demo shows the inventory to a user who has never seen it: a fleet, the chart
// installed by a Placement over the set sandbox-fleet, properties edited on the spokes that
// appear in the ClusterProfiles on the hub, and a new agent for one spoke after the other.
// It does only what a user could do with kubectl, its plugin and helm, and prints what that user
// would look at.
package demo
