// Package ocmtest fills an API server with the objects of Open Cluster Management
// in the state in which its controllers leave them: clusters that joined, sets that
// are bound, Placements that decided, accounts with a token. No controller of it
// runs, so a test plays them.
//
//	hub := ocmtest.New(t, server.Config(t))
//	set := hub.ExclusiveSet("set")
//	team := hub.Namespace("team", nil)
//	hub.Bind(team, set.Name)
//	cluster := hub.Cluster("c1", ocmtest.InSet(set.Name))
package ocmtest
