package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// story is what clients do on a hub, and what must hold meanwhile.
type story struct {
	name string
	// before and after are the pairs namespace/cluster that have a profile then; meanwhile are
	// those whose profile comes or goes in between.
	before, after, meanwhile []string
	// targets are the namespaces that may hold a copy of the token of a cluster's account.
	targets map[string][]string
	// setup makes the hub's state before, and act is what happens while there are faults.
	setup, act func(*world)
	// undo makes the state before from the state after, if that is much cheaper than a setup; nil if not. The story
	// then follows itself on a hub that is not emptied.
	undo func(*world)
	// atomic is true if the hub has ClusterProfiles as Open Cluster Management defines them, with
	// atomic lists.
	atomic bool
	// components are those of Open Cluster Management's that run, instead of being played by
	// ocmtest. They need a folder with its programs, so TestSeeded leaves such stories out.
	components []component
	// large is true if there are many clusters. TestSeeded has no plans of such stories, and plans of
	// some kinds are left out.
	large bool
	// without are faults that do not fit it.
	without []proxy.Kind
	// impossible are faults, as PLAN names them, after which the story cannot go on.
	impossible []string
	// patience is how much longer than others it may take to reach each of its states.
	patience time.Duration
	// sample is the cluster whose writes get faults, if not all writes and events do.
	sample string
	// races are clusters that are registered again perhaps before the manager has seen their deletion.
	races []string
	// most is how much the manager may write for a cluster; nil if that is not checked.
	most map[string]int
	// outdated are texts that no object may contain in the end, also names of properties that profiles
	// of races may lose.
	outdated []string
	// calm is for how long nothing may have been written for the state after to count as
	// reached, if that is longer than for other stories.
	calm time.Duration
}

const (
	prod, staging = "prod", "staging"
)

// turnOf is when a plan of a story runs, from 0. Those with many clusters take much longer, so they come
// last. Those with OCM's addon manager need another hub. What this addon does depends least on faults of
// the addon manager and of the registration controller.
func turnOf(s story, fault proxy.Fault) int {
	const last = 3
	prefix, _ := divided(fault)
	switch {
	case s.large:
		return last
	case prefix == addonManager.prefix || prefix == registrationController.prefix:
		return last - 1
	case s.runs(addonManager):
		return 1
	default:
		return 0
	}
}

// may are the pairs that have a profile at some time.
func (s story) may() []string { return slices.Concat(s.before, s.after, s.meanwhile) }

// keeps reports whether a pair has its profile from start to end.
func (s story) keeps(pair string) bool {
	return slices.Contains(s.before, pair) && slices.Contains(s.after, pair) && !slices.Contains(s.meanwhile, pair)
}

// has reports whether a cluster is in the inventory from start to end: some namespace keeps its profile.
func (s story) has(cluster string) bool {
	return slices.ContainsFunc(s.before, func(pair string) bool {
		_, of, _ := strings.Cut(pair, "/")
		return of == cluster && s.keeps(pair)
	})
}

// copies are the copies of tokens that belong to pairs, as namespace/Secret.
func (s story) copies(of []string) []string {
	var copies []string
	for _, pair := range of {
		namespace, cluster, _ := strings.Cut(pair, "/")
		if slices.Contains(s.targets[cluster], namespace) {
			copies = append(copies, pair+"-"+reader)
		}
	}
	return copies
}

// unregistered are names between c1 and c2 that fill a slice of decisions but for two.
func unregistered() []string {
	const fill = 98
	names := make([]string, fill)
	for i := range names {
		names[i] = fmt.Sprintf("c1-%02d", i)
	}
	return names
}

// stories are all of them.
var stories = []story{
	{
		name: "bind", after: pairs(teamA, "c1", "c2"),
		targets: map[string][]string{"c1": {teamA}},
		setup: func(w *world) {
			w.set(staging)
			w.cluster("c1", staging, "1")
			w.cluster("c2", staging, "1")
			w.account("c1", teamA, stranger)
		},
		act: func(w *world) { w.Bind(teamA, staging) },
	},
	{
		name: "edit", before: pairs(teamA, "c1", "c2"), after: pairs(teamA, "c1", "c2"),
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamA, prod)
			w.cluster("c1", prod, "1")
			w.cluster("c2", prod, "1")
		},
		act: func(w *world) {
			for _, size := range []string{"2", "3", "4"} {
				w.edit("c1", size)
				w.shows(teamA, "c1", size)
			}
		},
	},
	{
		// Another client writes a property of its own, as kubernetes-sigs' agent-sandbox does.
		name: "edit-beside-apply", before: pairs(teamA, "c1", "c2"), after: pairs(teamA, "c1", "c2"),
		setup: func(w *world) { w.shared((*world).applies) },
		act:   func(w *world) { w.editBeside((*world).applies) },
	},
	{
		// Another client reads, changes and writes profiles with atomic lists.
		name: "edit-beside-update", before: pairs(teamA, "c1", "c2"), after: pairs(teamA, "c1", "c2"), atomic: true,
		setup: func(w *world) { w.shared((*world).updates) },
		act:   func(w *world) { w.editBeside((*world).updates) },
	},
	{
		name:    "rotate",
		before:  slices.Concat(pairs(teamA, "c1"), pairs(teamB, "c1")),
		after:   slices.Concat(pairs(teamA, "c1"), pairs(teamB, "c1")),
		targets: map[string][]string{"c1": {teamA, teamB}},
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamA, prod)
			w.Bind(teamB, prod)
			w.cluster("c1", prod, "1")
			w.account("c1", teamA, teamB, stranger)
		},
		act: func(w *world) {
			w.rotateNamed("c1")
			w.copied(teamA, teamB)
			w.rotateNamed("c1")
			w.copiedFirst(teamA, teamB)
			// At once, because the manager looks again only for a moment.
			w.rotateUnnoticed("c1")
			w.copied(teamA, teamB)
		},
	},
	{
		name:    "unbind",
		before:  slices.Concat(pairs(teamA, "c1", "c2"), pairs(teamB, "c1", "c2")),
		after:   pairs(teamB, "c1", "c2"),
		targets: map[string][]string{"c1": {teamA, teamB}, "c2": {teamA}},
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamA, prod)
			w.Bind(teamB, prod)
			w.cluster("c1", prod, "1")
			w.cluster("c2", prod, "1")
			w.account("c1", teamA, teamB)
			w.account("c2", teamA)
		},
		act: func(w *world) {
			w.hold(teamA, "c2-"+reader)
			w.unbind(teamA, prod)
		},
	},
	{
		name: "register-again", before: pairs(teamA, "c1", "c2"), after: pairs(teamA, "c1", "c2"),
		meanwhile: pairs(teamA, "c1"),
		targets:   map[string][]string{"c1": {teamA}, "c2": {teamA}},
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamA, prod)
			w.cluster("c1", prod, "1")
			w.cluster("c2", prod, "1")
			w.account("c1", teamA)
			w.account("c2", teamA)
		},
		act: func(w *world) {
			w.unregister("c1")
			w.gone(teamA, "c1")
			w.unread("c1")
			if !w.unregistered("c1") {
				return // its name is taken
			}
			w.cluster("c1", prod, "2")
			w.shows(teamA, "c1", "2")
			w.account("c1", teamA)
			w.copied(teamA)
		},
	},
	{
		name:    "move",
		before:  pairs(teamA, clusterNames...),
		after:   slices.Concat(pairs(teamA, "c1", "c6"), pairs(teamB, clusterNames[1:5]...)),
		targets: map[string][]string{"c1": {teamA}, "c2": {teamA, teamB}},
		setup: func(w *world) {
			w.set(prod)
			w.set(staging)
			w.Bind(teamA, prod)
			w.Bind(teamB, staging)
			for _, cluster := range clusterNames {
				w.cluster(cluster, prod, "1")
			}
			w.account("c1", teamA, teamB)
			w.account("c2", teamA, teamB)
		},
		act: func(w *world) {
			for _, cluster := range clusterNames[1:5] {
				w.move(cluster, staging)
			}
		},
	},
	{
		name: "place", before: pairs(teamA, "c1", "c2", "c3"), after: pairs(teamA, "c2", "c3"),
		meanwhile: pairs(teamA, "c4"),
		targets:   map[string][]string{"c1": {teamA}, "c2": {teamA}},
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamA, prod)
			for _, cluster := range clusterNames[:4] {
				w.cluster(cluster, prod, "1")
			}
			w.account("c1", teamA)
			w.account("c2", teamA)
			w.place(teamA, "c1", "c2", "c3")
		},
		act: func(w *world) {
			w.decide(teamA, "c2", "c3", "c4")
			w.shows(teamA, "c4", "1")
			w.gone(teamA, "c1")
			w.decide(teamA, "c2", "c3")
		},
	},
	{
		name: "disable", before: pairs(teamB, "c1", "c2"), after: pairs(teamB, "c1", "c2"),
		meanwhile: pairs(teamB, "c1"),
		targets:   map[string][]string{"c1": {teamB}},
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamB, prod)
			w.cluster("c1", prod, "1")
			w.cluster("c2", prod, "1")
			w.account("c1", teamB)
		},
		act: func(w *world) {
			w.MustDelete(ocmtest.Addon("c1"))
			w.gone(teamB, "c1")
			w.withdrawn(teamB)
			w.Enable("c1")
			w.shows(teamB, "c1", "1")
			w.copied(teamB)
		},
	},
	{
		// What others replace by deleting it and creating it again costs no consumer anything. The creation
		// is the next request after the deletion, as when a GitOps tool replaces an object, so that only
		// milliseconds are between the two on an idle machine. Only a token's Secret is gone for
		// seconds. The manager acts on such an absence after ten seconds.
		name: "replace", before: pairs(teamB, "c1", "c2"), after: pairs(teamB, "c1", "c2"), calm: 12 * time.Second,
		targets: map[string][]string{"c1": {teamB}},
		setup: func(w *world) {
			w.set(prod)
			w.place(teamB, "c1", "c2")
			w.Bind(teamB, prod)
			for _, cluster := range clusterNames[:3] {
				w.cluster(cluster, prod, "1")
			}
			w.account("c1", teamB)
		},
		act: func(w *world) {
			w.replacePlacement(teamB, "c1", "c2")
			w.replaceGate()
			w.replaceClusterProxy()
			w.rotateNamed("c1")
			w.copied(teamB)
			w.replaceTokenSecret("c1")
		},
	},
	{
		// Open Cluster Management's scheduler writes the slices of its decisions one by one: a
		// cluster that moves to the next one is in none for a moment. All but the last are full,
		// here of clusters that are not registered.
		name: "slices", before: pairs(teamA, "c1", "c3", "c4"), after: pairs(teamA, clusterNames[:4]...),
		targets: map[string][]string{"c3": {teamA}},
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamA, prod)
			for _, cluster := range clusterNames[:4] {
				w.cluster(cluster, prod, "1")
			}
			w.account("c3", teamA)
			w.place(teamA, "c1", "c3")
			w.decideSlices(teamA, slices.Concat([]string{"c1"}, unregistered(), []string{"c3"}), []string{"c4"})
		},
		act: func(w *world) {
			w.decideSlices(teamA, slices.Concat([]string{"c1"}, unregistered(), []string{"c2"}), []string{"c3", "c4"})
			w.shows(teamA, "c2", "1")
		},
	},
	{
		// Another client deletes and changes what the manager has made.
		name: "damage", before: pairs(teamA, "c1", "c2"), after: pairs(teamA, "c1", "c2"),
		meanwhile: pairs(teamA, "c1"),
		targets:   map[string][]string{"c1": {teamA}},
		setup: func(w *world) {
			w.set(prod)
			w.Bind(teamA, prod)
			w.cluster("c1", prod, "1")
			w.cluster("c2", prod, "1")
			w.account("c1", teamA)
		},
		act: func(w *world) {
			w.losesCopy(teamA, "c1-"+reader)
			w.copied(teamA)
			w.losesLabels(teamA, "c1-"+reader)
			w.getsData(teamA, "c1-"+reader)
			w.freezes(teamA, "c1-"+reader)
			w.losesRights(teamA)
			w.losesRights(teamA)
			w.losesProfile(teamA, "c1")
			w.shows(teamA, "c1", "1")
		},
	},
	spread(),
	install(),
	rollback(),
	registerAgain(manyClusters),
}
