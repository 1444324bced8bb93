package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	hub = "hub"

	// agentNamespace is that of the agents on fleets' clusters.
	agentNamespace = "open-cluster-management-agent-addon"

	// checkPod is the Pod of the chart's test.
	checkPod = "cluster-inventory-test"

	accountPrefix = "system:serviceaccount:"
	podNameKey    = "authentication.kubernetes.io/pod-name"
)

// use is a kind of request that was made.
type use struct {
	who string
	// home is the namespace of the account, or the name of the agent's cluster.
	home string

	verb, group, resource string
	namespace, name       string

	// allowed is true if the authorizer allowed it, by the role of that name.
	allowed bool
	role    string
	// succeeded is true if nothing else refused it either.
	succeeded bool

	// as is the user as whom it was made, if that was another one.
	as string

	// streamed is true of a watch that begins with all objects. Where the API server cannot
	// do that, clients list the objects first.
	streamed bool
}

// String describes the request in a finding.
func (u use) String() string {
	object := grant{group: u.group, resource: u.resource}
	if u.name != "" {
		object.names = []string{u.name}
	}
	where := "of the cluster or all namespaces"
	if u.namespace != "" {
		where = "in namespace " + u.namespace
	}
	return fmt.Sprintf("%s: %s %s %s", u.who, u.verb, object.object(), where)
}

// usage is what audit logs show.
type usage struct {
	// requests are counted by what they were.
	requests map[use]int
	// others are requests with an account of this addon by another program, such as a test
	// that tries what its token allows; by program.
	others map[string]int
}

func newUsage() *usage {
	return &usage{requests: map[use]int{}, others: map[string]int{}}
}

// readLogs reads the audit logs below a directory, as fleets write them:
// <fleet>/<cluster>.log. release is the manager's namespace.
func readLogs(dir, release string) (*usage, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	if err != nil {
		return nil, err
	}
	if len(logs) == 0 {
		return nil, fmt.Errorf("no audit logs in %s", dir)
	}
	found := newUsage()
	for _, path := range logs {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		err = found.read(file, strings.TrimSuffix(filepath.Base(path), ".log"), release)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return found, nil
}

// read adds the log of one cluster's API server. The last line may be incomplete.
func (all *usage) read(log io.Reader, cluster, release string) error {
	// A watch is logged when it begins and when it ends.
	counted := map[types.UID]struct{}{}
	lines := bufio.NewReader(log)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		event := &auditv1.Event{}
		if err := json.Unmarshal(line, event); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if _, again := counted[event.AuditID]; again {
			continue
		}
		counted[event.AuditID] = struct{}{}
		all.add(event, cluster, release)
	}
}

func (all *usage) add(event *auditv1.Event, cluster, release string) {
	who, home := identify(event, cluster, release)
	if who == "" {
		return
	}
	if program := programOf(event); !slices.Contains(programs[who], program) {
		all.others[who+" as "+program]++
		return
	}
	u := use{
		who: who, home: home, verb: event.Verb,
		allowed: event.Annotations["authorization.k8s.io/decision"] == "allow",
		role:    roleIn(event.Annotations["authorization.k8s.io/reason"]),
	}
	if status := event.ResponseStatus; status != nil {
		u.succeeded = u.allowed && status.Code < 300
	}
	if ref := event.ObjectRef; ref != nil {
		u.group, u.resource, u.namespace, u.name = ref.APIGroup, ref.Resource, ref.Namespace, ref.Name
		if ref.Subresource != "" {
			u.resource += "/" + ref.Subresource
		}
		if u.verb == "create" && event.ObjectRef.Subresource == "" {
			// RBAC does not know the name of what is created; it is kept where it shows what
			// was bound.
			if u.resource != "rolebindings" {
				u.name = ""
			}
		}
	} else {
		u.resource, _, _ = strings.Cut(event.RequestURI, "?")
	}
	if request, err := url.Parse(event.RequestURI); err == nil && u.verb == "watch" {
		u.streamed = request.Query().Get("sendInitialEvents") == "true"
	}
	if event.ImpersonatedUser != nil {
		u.as = event.ImpersonatedUser.Username
	}
	all.requests[u]++
}

var agentUser = regexp.MustCompile(
	`^system:open-cluster-management:cluster:([^:]+):addon:cluster-inventory:agent:cluster-inventory$`)

// identify says who made a request, and where its home is; who is empty if it was none of
// this addon's accounts. The user that sent it counts, not one that it impersonates.
func identify(event *auditv1.Event, cluster, release string) (who, home string) {
	namespace, account, isAccount := strings.Cut(strings.TrimPrefix(event.User.Username, accountPrefix), ":")
	isAccount = isAccount && strings.HasPrefix(event.User.Username, accountPrefix)
	if slices.Contains(programs[plugin], programOf(event)) {
		return plugin, namespace
	}
	if user := agentUser.FindStringSubmatch(event.User.Username); user != nil && cluster == hub {
		return agentOnHub, user[1]
	}
	switch {
	case !isAccount:
		return "", ""
	case cluster == hub && account == agentAccount && namespace != agentNamespace:
		return agentOnHub, namespace
	case cluster == hub && namespace == release && account == managerAccount:
		if pods := event.User.Extra[podNameKey]; len(pods) == 1 && pods[0] == checkPod {
			return check, namespace
		}
		return manager, namespace
	case cluster == hub && namespace == release && account == hookAccount:
		return hook, namespace
	case account == agentAccount || account == cleanupAccount: // the hub may be its own cluster
		return byAccount[account], namespace
	default:
		return "", ""
	}
}

// programs are the user agents of each, up to the version.
var programs = map[string][]string{
	manager: managerPrograms, check: managerPrograms, hook: managerPrograms,
	agentOnHub: agentPrograms, agent: agentPrograms, cleanup: agentPrograms,
	plugin: {"cluster-inventory-cp-creds"},
}

// Clients that set no user agent have the program's file name.
var (
	managerPrograms = []string{"cluster-inventory-manager", "manager"}
	agentPrograms   = []string{"cluster-inventory-agent", "agent"}
)

// programOf is the first part of the user agent.
func programOf(event *auditv1.Event) string {
	program, _, _ := strings.Cut(event.UserAgent, "/")
	return program
}

var roleReason = regexp.MustCompile(`^RBAC: allowed by .* of (?:Cluster)?Role "([^"]*)" to `)

// roleIn returns the role that the RBAC authorizer names in its reason.
func roleIn(reason string) string {
	if found := roleReason.FindStringSubmatch(reason); found != nil {
		return found[1]
	}
	return ""
}
