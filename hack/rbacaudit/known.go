package main

import (
	"fmt"
	"slices"
)

const (
	addonGroup    = "addon.open-cluster-management.io"
	rbacGroup     = "rbac.authorization.k8s.io"
	certsGroup    = "certificates.k8s.io"
	workGroup     = "work.open-cluster-management.io"
	crdGroup      = "apiextensions.k8s.io"
	sigGroup      = "multicluster.x-k8s.io"
	claimGroup    = "cluster.open-cluster-management.io"
	eventsGroup   = "events.k8s.io"
	revisionGroup = "inventory.open-cluster-management.io"
)

// exception is a right that the audit logs of the journeys do not show as others, and why
// it is granted nevertheless.
type exception struct {
	who             string
	role            string // if several roles of theirs grant it
	group, resource string
	verbs           []string
	reason          string

	// test exercises a rare right.
	test string
	// sometimes is true if it depends on timing whether the journeys need the exception.
	sometimes bool
	// shownBy is the request within which the API server checks the right.
	shownBy request
}

// request is one that shows another right.
type request struct {
	verb, group, resource string
	// named is true if its object has the name of the right's.
	named bool
}

func (e exception) isFor(g grant, verb string) bool {
	return e.who == g.who && (e.role == "" || e.role == g.role) && g.about(e.group, e.resource) &&
		slices.Contains(e.verbs, verb)
}

func (e exception) name(verb string) string {
	return fmt.Sprintf("%s: %s %s", e.who, verb, grant{group: e.group, resource: e.resource}.object())
}

// find returns the exception for a verb of a grant.
func find(among []exception, g grant, verb string) (exception, bool) {
	at := slices.IndexFunc(among, func(e exception) bool { return e.isFor(g, verb) })
	if at < 0 {
		return exception{}, false
	}
	return among[at], true
}

// exceptions by what is special about them.
type exceptions struct {
	// within are rights that the API server checks while it serves another request, so that
	// audit logs never show them.
	within []exception
	// rare are those that only what does not happen in the journeys needs.
	rare []exception
	// wide are those that cannot be restricted to names or namespaces, for the table.
	wide []exception
	// byValue are what the chart also grants with a value that one of the journeys sets.
	byValue []grant
}

func (known exceptions) all() []exception {
	return slices.Concat(known.within, known.rare, known.wide)
}

// hostedRole is the ClusterRole that agent.hosted.enabled adds.
const hostedRole = "open-cluster-management:cluster-inventory:hosted-agents"

// managerRole is the manager's own ClusterRole. With credentials.mode=disabled it may look for copies.
const managerRole = "open-cluster-management:cluster-inventory:manager"

var known = exceptions{
	byValue: []grant{{
		who: manager, role: hostedRole, where: scope{title: "everywhere", everywhere: true},
		group: workGroup, resource: "manifestworks", verbs: []string{"list", "watch", "patch", "delete"},
	}, {
		who: manager, role: managerRole, where: scope{title: "everywhere", everywhere: true},
		group: rbacGroup, resource: "rolebindings", names: []string{"open-cluster-management:cluster-inventory:token-target"},
		verbs: []string{"list"},
	}},
	within: []exception{
		{
			who: manager, group: rbacGroup, resource: "clusterroles", verbs: []string{"bind"},
			reason:  "checked when it creates a RoleBinding of the same name",
			shownBy: request{"create", rbacGroup, "rolebindings", true},
		},
		{
			who: manager, group: certsGroup, resource: "signers", verbs: []string{"approve"},
			reason:  "checked when it approves a request",
			shownBy: request{"update", certsGroup, "certificatesigningrequests/approval", false},
		},
		{
			who: manager, group: addonGroup, resource: "managedclusteraddons/finalizers", verbs: []string{"update"},
			reason: "checked when it creates a ManifestWork that blocks the deletion of its owner, " +
				"on hubs with OwnerReferencesPermissionEnforcement",
			shownBy: request{"create", workGroup, "manifestworks", false},
		},
		{
			who: manager, group: revisionGroup, resource: "agentimages", verbs: []string{"deploy"},
			reason:  "checked by a policy when it creates a ManifestWork with an agent of that image",
			shownBy: request{"create", workGroup, "manifestworks", false},
		},
	},
	rare: []exception{
		{
			who: manager, role: managerRole,
			group: rbacGroup, resource: "rolebindings", verbs: []string{"get"}, sometimes: true,
			reason: "where there is already one that its cache does not show",
			test:   "TestGrantsTrustTheAPIServerWhereTheCacheIsBehind",
		},
		{
			who: manager, role: "open-cluster-management:cluster-inventory:credentials",
			group: rbacGroup, resource: "rolebindings", verbs: []string{"get"}, sometimes: true,
			reason: "where there is already one that its cache does not show", test: "TestAGrantThatTheCacheLacksIsRepaired",
		},
		{
			who: manager, role: "open-cluster-management:cluster-inventory:credentials",
			group: rbacGroup, resource: "rolebindings", verbs: []string{"patch"},
			reason: "when another client changed one", test: "TestRightsAreRestored",
		},
		{
			who: manager, role: managerRole,
			group: workGroup, resource: "manifestworks", verbs: []string{"get"}, sometimes: true,
			reason: "where a spoke is not cleaned up in time", test: "TestOurDeletedWorksOfALostSpokeAreReleased",
		},
		{
			who: manager, role: hostedRole,
			group: workGroup, resource: "manifestworks", verbs: []string{"patch"}, sometimes: true,
			reason: "when the configuration of a hosted agent changes", test: "TestConfigurations",
		},
		{
			who: agent, group: crdGroup, resource: "customresourcedefinitions", verbs: []string{"get"}, sometimes: true,
			reason: "where the cluster serves no version of the API", test: "TestObserve",
		},
		{
			who: hook, group: sigGroup, resource: "clusterprofiles", verbs: []string{"delete"}, sometimes: true,
			reason: "those that a manager which does not run has left", test: "TestUninstall",
		},
		{
			who: hook, group: sigGroup, resource: "placementdecisions", verbs: []string{"delete"}, sometimes: true,
			reason: "those that a manager which does not run has left", test: "TestUninstallReadsPageByPage",
		},
	},
	wide: []exception{
		{
			who: manager, group: sigGroup, resource: "placementdecisions", verbs: []string{"create", "patch", "delete"},
			reason: "named after the Placement, in its namespace",
		},
		{
			who: manager, group: crdGroup, resource: "customresourcedefinitions", verbs: []string{"get"},
			reason: "list and watch, which no name restricts, show the same",
		},
		{
			who: manager, role: hostedRole,
			group: workGroup, resource: "manifestworks", verbs: []string{"patch", "delete"},
			reason: "those of hosted agents are named after the cluster",
		},
		{
			who: manager, group: sigGroup, resource: "clusterprofiles", verbs: []string{"patch", "delete"},
			reason: "in consumers' namespaces",
		},
		{
			who: hook, group: sigGroup, resource: "clusterprofiles", verbs: []string{"patch", "delete"},
			reason: "in consumers' namespaces",
		},
		{
			who: hook, group: revisionGroup, resource: "agentrevisions", verbs: []string{"delete"},
			reason: "named after their content",
		},
		{
			who: agent, group: claimGroup, resource: "clusterclaims", verbs: []string{"patch"},
			reason: "named after the cluster's properties",
		},
		{
			who: agent, group: eventsGroup, resource: "events", verbs: []string{"create"},
			reason: "in `default`, where the manager may create no Role",
		},
		{
			who: cleanup, group: claimGroup, resource: "clusterclaims", verbs: []string{"delete"},
			reason: "named after the cluster's properties",
		},
	},
}
