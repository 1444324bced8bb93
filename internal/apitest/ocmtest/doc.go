// Package ocmtest fills an API server with the objects of Open Cluster Management in the
// state in which its controllers leave them: clusters that have joined, sets that are
// bound, Placements that have decided, accounts with a token. None of its controllers run,
// so tests play them.
//
//	hub := ocmtest.New(t, server.Config(t))
//	set := hub.ExclusiveSet("set")
//	team := hub.Namespace("team", nil)
//	hub.Bind(team, set.Name)
//	cluster := hub.Cluster("c1", ocmtest.InSet(set.Name))
package ocmtest
