package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const (
	release     = "inventory-system"
	managerUser = "system:serviceaccount:inventory-system:cluster-inventory-manager"
	hookUser    = "system:serviceaccount:inventory-system:cluster-inventory-uninstall"
	certificate = "system:open-cluster-management:cluster:c1:addon:cluster-inventory:agent:cluster-inventory"
)

// logged is an event in the log of a cluster's API server.
type logged struct {
	cluster string
	auditv1.Event
}

// asked is a request that a role allowed and that succeeded. The object is
// [NAMESPACE/]RESOURCE[/SUBRESOURCE][=NAME] of the API group "g".
func asked(user, verb, object, role string, changes ...func(*logged)) logged {
	object, name, _ := strings.Cut(object, "=")
	namespace, resource, found := strings.Cut(object, ":")
	if !found {
		namespace, resource = "", object
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	program := "cluster-inventory-manager"
	if !strings.HasPrefix(user, "system:serviceaccount:"+release+":cluster-inventory-") {
		program = "cluster-inventory-agent"
	}
	l := logged{cluster: hub, Event: auditv1.Event{
		Stage: auditv1.StageResponseComplete, Verb: verb, UserAgent: program + "/v0.0.0 (linux/amd64)",
		User: authenticationv1.UserInfo{Username: user},
		ObjectRef: &auditv1.ObjectReference{
			APIGroup: "g", Resource: resource, Subresource: subresource, Namespace: namespace, Name: name,
		},
		ResponseStatus: &metav1.Status{Code: 200},
		Annotations: map[string]string{
			"authorization.k8s.io/decision": "allow",
			"authorization.k8s.io/reason": fmt.Sprintf(
				`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole %q to ServiceAccount "s/s"`, role),
		},
	}}
	for _, change := range changes {
		change(&l)
	}
	return l
}

func on(cluster string) func(*logged) { return func(l *logged) { l.cluster = cluster } }

func byProgram(userAgent string) func(*logged) { return func(l *logged) { l.UserAgent = userAgent } }

func inPod(name string) func(*logged) {
	return func(l *logged) {
		l.User.Extra = map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {name}}
	}
}

func actingAs(user string) func(*logged) {
	return func(l *logged) { l.ImpersonatedUser = &authenticationv1.UserInfo{Username: user} }
}

// refused is what RBAC refuses.
func refused(l *logged) {
	l.ResponseStatus.Code = 403
	l.Annotations = map[string]string{"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}
}

// denied is what a policy refuses that RBAC allows.
func denied(l *logged) { l.ResponseStatus.Code = 403 }

// atPath makes it a request for no resource.
func atPath(path string) func(*logged) {
	return func(l *logged) { l.ObjectRef, l.RequestURI = nil, path+"?timeout=32s" }
}

func withoutRole(l *logged) { l.Annotations["authorization.k8s.io/reason"] = "" }

// usageOf encodes and reads logs.
func usageOf(t *testing.T, events []logged) *usage {
	t.Helper()
	logs := map[string]*bytes.Buffer{hub: {}, "c1": {}, "c2": {}}
	for i, event := range events {
		if event.AuditID == "" {
			event.AuditID = types.UID(fmt.Sprint(i))
		}
		line, err := json.Marshal(event.Event)
		apitest.Must(t, err)
		logs[event.cluster].Write(append(line, '\n'))
	}
	found := newUsage()
	for cluster, log := range logs {
		log.WriteString(`{"kind":"Event","audi`) // the API server was killed
		apitest.Must(t, found.read(log, cluster, release))
	}
	return found
}

// ofAll is how findings describe requests without a namespace.
const ofAll = "of the cluster or all namespaces"

// notGranted is the finding about one request that a role allowed, and none of the addon's.
func notGranted(what, role string) string {
	return fmt.Sprintf("%s: role %q allowed it, and chart and manifests do not (1 requests)", what, role)
}

var everywhere = scope{title: "everywhere", everywhere: true}

func granted(who, role, resource string, names []string, verbs ...string) grant {
	return grant{who: who, role: role, where: everywhere, group: "g", resource: resource, names: names, verbs: verbs}
}

func in(where scope, g grant) grant {
	g.where = where
	return g
}

func TestRightsAreComparedWithTheirUse(t *testing.T) {
	things := []grant{granted(manager, "m", "things", nil, "list")}
	const unused = "manager: things.g (everywhere): list is unused"
	watched := []grant{granted(manager, "m", "things", nil, "watch")}
	ofTheCluster := scope{title: "the namespace of its cluster", own: true}
	ofItsOwn := []grant{in(ofTheCluster, granted(agentOnHub, "a", "things", []string{"one"}, "list"))}
	onSpoke := []grant{in(scope{title: "its namespace", own: true}, granted(agent, "a", "things", nil, "list"))}
	binds := []grant{
		granted(manager, "m", "roles", []string{"one", "two"}, "bind"), granted(manager, "m", "bindings", nil, "create"),
	}
	bindsOfRBAC := []grant{binds[0], {
		who: manager, role: "m", where: everywhere, group: rbacGroup, resource: "rolebindings", verbs: []string{"create"},
	}}
	shown := exceptions{within: []exception{{
		who: manager, group: "g", resource: "roles", verbs: []string{"bind"}, reason: "checked when it binds",
		shownBy: request{"create", rbacGroup, "rolebindings", true},
	}}}
	bind := func(name string, changes ...func(*logged)) logged {
		l := asked(managerUser, "create", "ns-"+name+":rolebindings="+name, "m", changes...)
		l.ObjectRef.APIGroup = rbacGroup
		return l
	}
	rare := func(sometimes bool) exceptions {
		return exceptions{rare: []exception{{
			who: manager, group: "g", resource: "things", verbs: []string{"list"}, reason: "an outage", sometimes: sometimes,
		}}}
	}
	lists := func(changes ...func(*logged)) []logged {
		return []logged{asked(managerUser, "list", "things", "m", changes...)}
	}
	tests := map[string]struct {
		grants []grant
		known  exceptions
		events []logged
		want   []string
	}{
		"a right that is used":              {grants: things, events: lists()},
		"an unused right":                   {grants: things, want: []string{unused}},
		"a right that only a policy denies": {grants: things, events: lists(denied)},
		"a right that RBAC refuses, for instance before it is bound": {
			grants: things, events: lists(refused), want: []string{unused},
		},
		"a right that only the chart's test uses": {
			grants: things, events: lists(inPod("cluster-inventory-test")), want: []string{unused},
		},
		"a right that a pod of the manager uses": {grants: things, events: lists(inPod("cluster-inventory-manager-0"))},
		"a right that only a test uses with the manager's token": {
			grants: things, events: lists(byProgram("installation.test/v0.0.0")), want: []string{unused},
		},
		"a right that only the account's namesake uses": {grants: things, want: []string{unused}, events: []logged{
			asked("system:serviceaccount:team:cluster-inventory-manager", "list", "things", "m", byProgram("manager/v0")),
			asked("system:serviceaccount:inventory-system:cluster-inventory-manager-2", "list", "things", "m"),
			asked("cluster-inventory-manager", "list", "things", "m", byProgram("manager/v0")),
		}},
		"a right that only the account of that name on a spoke uses": {
			grants: things, events: lists(on("c1")), want: []string{unused},
		},
		"a right that only the hook uses": {
			grants: things, events: []logged{asked(hookUser, "list", "things", "m")},
			want: []string{
				notGranted("uninstall hook: list things.g "+ofAll, "m"),
				unused,
			},
		},
		"a right that only another user uses as the manager": {
			grants: things, want: []string{unused},
			events: []logged{asked("admin", "list", "things", "m", actingAs(managerUser), byProgram("manager/v0"))},
		},
		"the manager as another user": {grants: things, events: lists(actingAs("admin")), want: []string{
			"manager: list things.g " + ofAll + " as admin: no program of this addon may act as another user (1 requests)",
			unused,
		}},
		"a right on the resource does not show one on the subresource": {
			grants: []grant{granted(manager, "m", "things/status", nil, "list")},
			events: lists(),
			want: []string{
				notGranted("manager: list things.g "+ofAll, "m"),
				"manager: things/status.g (everywhere): list is unused",
			},
		},
		"a right on the subresource": {
			grants: []grant{granted(manager, "m", "things/status", nil, "patch")},
			events: []logged{
				asked(managerUser, "patch", "c1:things/status=c1", "m"), asked(managerUser, "patch", "a:things/status=c2", "m"),
			},
		},
		"an unused name": {
			grants: []grant{granted(manager, "m", "things", []string{"one", "two"}, "list", "watch")},
			events: []logged{
				asked(managerUser, "list", "things=one", "m"), asked(managerUser, "watch", "things=one", "m"),
			},
			want: []string{"manager: things.g one, two (everywhere): no program used it for two"},
		},
		"a list of all although only one name is granted": {
			grants: []grant{granted(manager, "m", "things", []string{"one"}, "list")},
			events: append(lists(), asked(managerUser, "list", "things=one", "m")),
			want: []string{
				notGranted("manager: list things.g "+ofAll, "m"),
			},
		},
		"a right by a role of another program": {
			grants: things, events: append(lists(), asked(managerUser, "list", "secrets", "theirs")),
			want: []string{
				notGranted("manager: list secrets.g "+ofAll, "theirs"),
			},
		},
		"a granted right, by a role of another program": {
			grants: things, events: append(lists(), asked(managerUser, "list", "things", "theirs")),
			want: []string{
				notGranted("manager: list things.g "+ofAll, "theirs"),
			},
		},
		"a right by no role, as administrators have": {
			grants: things, events: append(lists(), asked(managerUser, "delete", "things=x", "", withoutRole)),
			want: []string{
				notGranted("manager: delete things.g x "+ofAll, ""),
			},
		},
		"what Kubernetes allows all users": {grants: things, events: append(lists(),
			asked(managerUser, "create", "reviews", "system:basic-user"),
			asked(managerUser, "get", "", "system:discovery", atPath("/apis")),
		)},
		"a path that only a role allows": {
			grants: things, events: append(lists(), asked(managerUser, "get", "", "monitoring", atPath("/metrics"))),
			want: []string{
				notGranted("manager: get /metrics "+ofAll, "monitoring"),
			},
		},
		"a path that is granted": {
			grants: []grant{{who: manager, role: "m", where: everywhere, resource: "/metrics", verbs: []string{"get"}}},
			events: []logged{asked(managerUser, "get", "", "m", atPath("/metrics"))},
		},
		"a refused request of a kind that is granted elsewhere": {
			grants: things, events: append(lists(), asked(managerUser, "list", "ns:things", "", refused)),
		},
		"a refused request of another kind": {
			grants: things, events: append(lists(), asked(managerUser, "list", "ns:secrets=s", "", refused)),
			want: []string{
				"manager: list secrets.g " + ofAll + ": this was refused, and nothing of the kind is granted (1 requests)",
			},
		},
		"one watch, which is logged when it begins and when it ends": {grants: watched, events: []logged{
			asked(managerUser, "watch", "things", "m", func(l *logged) {
				l.AuditID, l.Stage = "one", auditv1.StageResponseStarted
			}),
			asked(managerUser, "watch", "things", "m", func(l *logged) { l.AuditID = "one" }),
		}},
		"a watch that begins with all objects, in place of a list": {
			grants: []grant{granted(manager, "m", "things", nil, "list", "watch")},
			events: []logged{asked(managerUser, "watch", "things", "m", func(l *logged) {
				l.RequestURI = "/apis/g/v1/things?sendInitialEvents=true&watch=true"
			})},
		},
		"a watch that follows a list": {
			grants: []grant{granted(manager, "m", "things", nil, "list", "watch")},
			events: []logged{asked(managerUser, "watch", "things", "m", func(l *logged) {
				l.RequestURI = "/apis/g/v1/things?watch=true"
			})},
			want: []string{unused},
		},
		"an agent with a certificate, in its cluster's namespace": {
			grants: ofItsOwn, events: []logged{asked(certificate, "list", "c1:things=one", "a")},
		},
		"an agent with a token, in its cluster's namespace": {
			grants: ofItsOwn,
			events: []logged{asked("system:serviceaccount:c2:cluster-inventory-agent", "list", "c2:things=one", "a")},
		},
		"an agent of the hub, which is its own cluster": {
			grants: onSpoke, events: []logged{asked(
				"system:serviceaccount:open-cluster-management-agent-addon:cluster-inventory-agent", "list",
				"open-cluster-management-agent-addon:things", "a",
			)},
		},
		"an agent, in another cluster's namespace": {
			grants: ofItsOwn,
			events: []logged{
				asked(certificate, "list", "c1:things=one", "a"), asked(certificate, "list", "c2:things=one", "a"),
			},
			want: []string{
				notGranted("agent, on the hub: list things.g one in namespace c2", "a"),
			},
		},
		"the agent of another addon": {
			grants: ofItsOwn, want: []string{"agent, on the hub: things.g one (the namespace of its cluster): list is unused"},
			events: []logged{
				asked(strings.Replace(certificate, "addon:cluster-inventory", "addon:other", 1), "list", "c1:things=one", "a"),
			},
		},
		"a hosted agent, on its cluster": {grants: onSpoke, events: []logged{asked(
			"system:serviceaccount:cluster-inventory-c2:cluster-inventory-agent", "list", "cluster-inventory-c2:things", "a",
			on("c2"),
		)}},
		"a hosted agent's account on the hosting cluster, which has no rights": {
			grants: onSpoke, want: []string{"agent, on its cluster: things.g (its namespace): list is unused"},
			events: []logged{asked(
				"system:serviceaccount:cluster-inventory-c2:cluster-inventory-agent", "list", "cluster-inventory-c2:things", "",
				on("c1"), refused,
			)},
		},
		"cp-creds, with any account and role of the consumer": {
			grants: []grant{pluginGrant},
			events: []logged{asked("system:serviceaccount:team:reader", "get", "team:secrets=c1-a", "readers",
				byProgram("cluster-inventory-cp-creds"), func(l *logged) { l.ObjectRef.APIGroup = "" })},
		},
		"cp-creds, which lists Secrets": {
			grants: []grant{pluginGrant},
			events: []logged{
				asked("system:serviceaccount:team:reader", "list", "team:secrets", "readers",
					byProgram("cluster-inventory-cp-creds"), func(l *logged) { l.ObjectRef.APIGroup = "" }),
			},
			want: []string{
				notGranted("`cp-creds`: list secrets in namespace team", "readers"),
				"`cp-creds`: secrets (the consumer's namespace): get is unused",
			},
		},
		"the consumer itself is none of this addon's accounts": {
			grants: things,
			events: append(lists(), asked("system:serviceaccount:team:reader", "list", "team:secrets", "readers")),
		},
		"rights that are checked within another request": {
			grants: bindsOfRBAC, known: shown, events: []logged{bind("one"), bind("two")},
		},
		"one of them, of a name that was not bound": {
			grants: bindsOfRBAC, known: shown, events: []logged{bind("one"), bind("other"), bind("c1")},
			want: []string{
				"manager: roles.g one, two (everywhere): bind is unused: there was no create of rolebindings two",
			},
		},
		"one of them, in a request that a policy denied": {
			grants: bindsOfRBAC, known: shown, events: []logged{bind("one"), bind("two", denied), bind("c1")},
			want: []string{
				"manager: roles.g one, two (everywhere): bind is unused: there was no create of rolebindings two",
			},
		},
		"a right that rare events need": {grants: things, known: rare(false)},
		"a right that rare events need, and others, too": {
			grants: things, known: rare(false), events: lists(),
			want: []string{"manager: list things.g: its exception is not needed any more: an outage"},
		},
		"a right that some runs need": {grants: things, known: rare(true), events: lists()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			used := usageOf(t, test.events)
			_, findings := compareUse(test.grants, used, test.known)
			if diff := cmp.Diff(test.want, findings); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	grants := []grant{granted(manager, "m", "things", nil, "list")}
	used := usageOf(t, []logged{
		asked(managerUser, "list", "things", "m"),
		asked(managerUser, "list", "things", "m", func(l *logged) {
			l.AuditID, l.Stage = "one", auditv1.StageResponseStarted
		}),
		asked(managerUser, "list", "things", "m", func(l *logged) { l.AuditID = "one" }),
		asked(managerUser, "list", "things", "m", byProgram("installation.test/v0.0.0")),
	})
	rows, _ := compareUse(grants, used, exceptions{})
	if got := rows[0].requests["list"]; got != 2 {
		t.Errorf("%d requests: want 2", got)
	}
	var text bytes.Buffer
	apitest.Must(t, report(&text, rows, used, exceptions{}))
	for _, line := range []string{"    list   2 requests\n", "not counted: manager as installation.test: 1 requests\n"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("the report lacks %q:\n%s", line, text.String())
		}
	}
}

func TestGrantsAreValidatedWithoutTheirUse(t *testing.T) {
	one := granted(manager, "m", "things", []string{"one"}, "get")
	tests := map[string]struct {
		grants []grant
		known  exceptions
		want   []string
	}{
		"different ones": {grants: []grant{
			one, granted(hook, "h", "things", []string{"one"}, "get"), granted(manager, "m", "things/status", nil, "get"),
			granted(manager, "m", "things", []string{"two"}, "get"),
			in(scope{title: "a", namespace: "a"}, granted(manager, "m", "others", nil, "get")),
			in(scope{title: "b", namespace: "b"}, granted(manager, "m", "others", nil, "get")),
		}},
		"all verbs": {
			[]grant{granted(manager, "m", "things", nil, "*")}, exceptions{},
			[]string{`manager: things.g (everywhere): "*" is a wildcard`},
		},
		"all resources": {
			[]grant{granted(manager, "m", "*", nil, "get")}, exceptions{},
			[]string{`manager: *.g (everywhere): "*" is a wildcard`},
		},
		"all subresources": {
			[]grant{granted(manager, "m", "things/*", nil, "get")}, exceptions{},
			[]string{`manager: things/*.g (everywhere): "things/*" is a wildcard`},
		},
		"all groups": {
			[]grant{{who: manager, where: everywhere, group: "*", resource: "things", verbs: []string{"get"}}}, exceptions{},
			[]string{`manager: things.* (everywhere): "*" is a wildcard`},
		},
		"all paths": {
			[]grant{{who: manager, where: everywhere, resource: "/debug/*", verbs: []string{"get"}}}, exceptions{},
			[]string{`manager: /debug/* (everywhere): "/debug/*" is a wildcard`},
		},
		"the same twice": {
			[]grant{one, one}, exceptions{}, []string{"manager: things.g one (everywhere): role m grants get already"},
		},
		"by name, and for all": {
			[]grant{one, granted(manager, "all", "things", nil, "get", "list")}, exceptions{},
			[]string{"manager: things.g one (everywhere): role all grants get already"},
		},
		"in a namespace, and everywhere": {
			[]grant{granted(manager, "all", "things", nil, "get"), in(scope{title: "a", namespace: "a"}, one)}, exceptions{},
			[]string{"manager: things.g one (a): role all grants get already"},
		},
		"an exception for what is not granted": {
			[]grant{one}, exceptions{rare: []exception{
				{who: manager, group: "g", resource: "things", verbs: []string{"get", "list"}},
			}},
			[]string{"manager: list things.g: it has an exception, and is not granted"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, validateGrants(test.grants, test.known)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
