package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Who has rights, as tables name them.
const (
	manager    = "manager"
	hook       = "uninstall hook"
	agentOnHub = "agent, on the hub"
	agent      = "agent, on its cluster"
	cleanup    = "clean-up Job, on the cluster"
	plugin     = "`cp-creds`"

	// check is what "helm test" runs, with the manager's account. It has no rights of its
	// own, and what it uses is no reason for the manager to have it.
	check = "the chart's test"
)

// The ServiceAccounts of chart and manifests.
const (
	managerAccount = "cluster-inventory-manager"
	hookAccount    = "cluster-inventory-uninstall"
	agentAccount   = "cluster-inventory-agent"
	cleanupAccount = "cluster-inventory-cleanup"
)

var byAccount = map[string]string{
	managerAccount: manager, hookAccount: hook, agentAccount: agent, cleanupAccount: cleanup,
}

// scope is where a right holds. The fields after title restrict it to a namespace.
type scope struct {
	title string

	// everywhere is true of what a ClusterRoleBinding grants.
	everywhere bool
	// own is true if the namespace is that of the account, or of the agent's cluster.
	own bool
	// namespace is the only one, or empty if it may be any.
	namespace string
}

func (s scope) contains(u use) bool {
	switch {
	case s.everywhere:
		return true
	case s.own:
		return u.namespace != "" && u.namespace == u.home
	case s.namespace != "":
		return u.namespace == s.namespace
	default:
		return u.namespace != ""
	}
}

// boundLater are the ClusterRoles that no manifest binds: who gets them, and where.
var boundLater = map[string]struct {
	who   string
	where scope
}{
	"open-cluster-management:cluster-inventory:token-source": {
		manager, scope{title: "namespaces of clusters with an account to copy"},
	},
	"open-cluster-management:cluster-inventory:token-target": {manager, scope{title: "namespaces with copies of tokens"}},
	"open-cluster-management:cluster-inventory:agent-on-hub": {
		agentOnHub, scope{title: "the namespace of its cluster", own: true},
	},
	// For users who read the metrics; not bound by this addon.
	"open-cluster-management:cluster-inventory:metrics-reader": {},
}

// pluginGrant is what cp-creds needs. The consumer that runs it has the right by a Role of
// its own (docs/consumers.md).
var pluginGrant = grant{
	who: plugin, where: scope{title: "the consumer's namespace"}, resource: "secrets", verbs: []string{"get"},
}

// grant is one rule of a role, for one resource: a row of the table.
type grant struct {
	who string
	// role is the name of the Role or ClusterRole; empty if it may be any.
	role  string
	where scope

	// resource may have a subresource, or be a path that is no resource.
	group, resource string
	// names restrict it to objects, unless empty.
	names []string
	verbs []string
}

// otherValues are names that a journey grants by a value of the chart, in place of the
// default.
var otherValues = map[string]string{
	"there-is-none": "open-cluster-management:cluster-manager-registration:controller",
}

// allows reports whether the grant covers a request.
func (g grant) allows(u use) bool {
	isNamed := func(name string) bool { return name == u.name || name == otherValues[u.name] }
	return g.about(u.group, u.resource) && slices.Contains(g.verbs, u.verb) && g.where.contains(u) &&
		(len(g.names) == 0 || slices.ContainsFunc(g.names, isNamed))
}

func (g grant) about(group, resource string) bool { return g.group == group && g.resource == resource }

// String names the grant in a finding.
func (g grant) String() string {
	return fmt.Sprintf("%s: %s (%s)", g.who, g.object(), g.where.title)
}

// object is the resource with its group and names.
func (g grant) object() string {
	name := g.resource
	if g.group != "" {
		name += "." + g.group
	}
	if len(g.names) > 0 {
		name += " " + strings.Join(g.names, ", ")
	}
	return name
}

// binding is a RoleBinding or ClusterRoleBinding.
type binding struct {
	object *unstructured.Unstructured
	rbacv1.RoleBinding
}

// grantsOf returns what objects grant: those of the chart, or the manifests of a spoke. The
// order is that of the objects.
func grantsOf(objects []*unstructured.Unstructured) ([]grant, error) {
	var bindings []binding
	release := releaseNamespace(objects)
	for _, object := range objects {
		if kind := object.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		b := binding{object: object}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &b.RoleBinding); err != nil {
			return nil, err
		}
		bindings = append(bindings, b)
	}
	var all []grant
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		holders, err := holdersOf(object, bindings, release)
		if err != nil {
			return nil, err
		}
		for _, holder := range holders {
			rules, err := rulesOf(object, holder)
			if err != nil {
				return nil, err
			}
			all = append(all, rules...)
		}
	}
	return all, nil
}

// releaseNamespace is that of the manager, or empty among the manifests of a spoke.
func releaseNamespace(objects []*unstructured.Unstructured) string {
	for _, object := range objects {
		if object.GetKind() == "ServiceAccount" && object.GetName() == managerAccount {
			return object.GetNamespace()
		}
	}
	return ""
}

// holdersOf returns who gets a role, and where, as grants without rules.
func holdersOf(role *unstructured.Unstructured, bindings []binding, release string) ([]grant, error) {
	var holders []grant
	name := role.GetKind() + " " + role.GetName()
	for _, b := range bindings {
		if b.RoleRef.Kind != role.GetKind() || b.RoleRef.Name != role.GetName() ||
			role.GetKind() == "Role" && b.Namespace != role.GetNamespace() {
			continue
		}
		where := scope{title: "everywhere", everywhere: true}
		if b.object.GetKind() == "RoleBinding" {
			switch b.Namespace {
			case "":
				where = scope{title: "its namespace", own: true} // as on every spoke
			case release:
				where = scope{title: "the release's namespace", namespace: release}
			default:
				where = scope{title: "cluster-proxy's namespace", namespace: b.Namespace}
			}
		}
		for _, subject := range b.Subjects {
			who := byAccount[subject.Name]
			if who == "" || subject.Kind != rbacv1.ServiceAccountKind || subject.Namespace != release {
				return nil, fmt.Errorf("%s is bound to %s %s, which is no account of this addon", name, subject.Kind, subject.Name)
			}
			holders = append(holders, grant{who: who, role: role.GetName(), where: where})
		}
	}
	later, known := boundLater[role.GetName()]
	switch {
	case known && len(holders) > 0:
		return nil, fmt.Errorf("%s is bound at once, and should be later", name)
	case !known && len(holders) == 0:
		return nil, fmt.Errorf("no subject is bound to %s", name)
	case later.who != "":
		holders = append(holders, grant{who: later.who, role: role.GetName(), where: later.where})
	}
	return holders, nil
}

// rulesOf returns one grant for each group and resource of a role's rules.
func rulesOf(object *unstructured.Unstructured, holder grant) ([]grant, error) {
	role := &rbacv1.ClusterRole{} // a Role has the same rules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
		return nil, err
	}
	if role.AggregationRule != nil {
		return nil, fmt.Errorf("ClusterRole %s gets rules from others", role.Name)
	}
	var all []grant
	for _, rule := range role.Rules {
		g := holder
		g.verbs, g.names = rule.Verbs, rule.ResourceNames
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				g.group, g.resource = group, resource
				all = append(all, g)
			}
		}
		for _, path := range rule.NonResourceURLs {
			g.group, g.resource = "", path
			all = append(all, g)
		}
	}
	return all, nil
}

// ofRevision is 1 for the grant of an AgentRevision, whose Role has another name, and so
// another place among the objects, with every revision.
func ofRevision(g grant) int {
	if g.resource == "agentimages" {
		return 1
	}
	return 0
}

// sorted orders grants as tables show them.
func sorted(grants []grant) []grant {
	order := []string{manager, hook, agentOnHub, agent, cleanup, plugin}
	places := []string{"everywhere"}
	all := slices.Clone(grants)
	slices.SortStableFunc(all, func(a, b grant) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.who), slices.Index(order, b.who)),
			-cmp.Compare(slices.Index(places, a.where.title), slices.Index(places, b.where.title)),
			cmp.Compare(a.where.title, b.where.title),
			cmp.Compare(ofRevision(a), ofRevision(b)),
		)
	})
	return all
}
