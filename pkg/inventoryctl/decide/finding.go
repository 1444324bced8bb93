package decide

import (
	"fmt"
	"slices"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
)

// State is the state of one step or check.
type State string

// The states. Only Missing and Problem require action.
const (
	Done          State = "done"
	Missing       State = "missing"
	NotVisible    State = "not visible to you"
	NotConfigured State = "not configured"

	OK      State = "ok"
	Problem State = "problem"
)

// Finding is one step of a chain, or one check.
type Finding struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`

	// Fix is a command, or another remedy; empty if no action is required.
	Fix string `json:"fix,omitempty"`
}

// Finding returns a finding in this state.
func (s State) Finding(name, text string) Finding { return Finding{Name: name, State: s, Text: text} }

// FixedBy returns a finding in this state, and what to do about it; empty if no action is required.
func (s State) FixedBy(name, text, fix string) Finding {
	return Finding{Name: name, State: s, Text: text, Fix: fix}
}

// Unreadable returns the finding that something decisive may not be read.
func Unreadable(name, kinds string) Finding {
	return NotVisible.Finding(name, "you may not read "+kinds)
}

var (
	done, notConfigured, ok = Done.Finding, NotConfigured.Finding, OK.Finding
	missing, problem        = Missing.FixedBy, Problem.FixedBy
	notVisible              = Unreadable
)

// IsWrong reports whether action is required.
func (f Finding) IsWrong() bool { return f.State == Missing || f.State == Problem }

// FirstWrong returns the first finding that requires action, nil if there is none.
func FirstWrong(findings []Finding) *Finding {
	if at := slices.IndexFunc(findings, Finding.IsWrong); at >= 0 {
		return &findings[at]
	}
	return nil
}

// Object is an object that may be absent or hidden.
type Object[T any] struct {
	Object *T // nil if absent or hidden
	Hidden bool
}

// Explanation is a chain of steps, and whether everything visible in it is well.
type Explanation struct {
	Cluster   string    `json:"cluster"`
	Namespace string    `json:"namespace,omitempty"`
	Property  string    `json:"property,omitempty"`
	Steps     []Finding `json:"steps"`

	// Events are the newest of each reason by which the manager told the namespace's consumers
	// what they lack of the cluster.
	Events []Event `json:"events,omitempty"`
}

// describeAddon is the command that shows the addon of a cluster, with its conditions.
func describeAddon(cluster string) string {
	return fmt.Sprintf("kubectl describe managedclusteraddon %s -n %s", contract.AddonName, cluster)
}

// EnableAddon is the command that installs the addon on clusters, whose names are separated by commas.
func EnableAddon(clusters string) string {
	return fmt.Sprintf("clusteradm addon enable --names %s --clusters %s", contract.AddonName, clusters)
}

// MaxClusters is how many clusters a check or a line names.
const MaxClusters = 5

// UsualNamespace is where the chart is usually installed.
const UsualNamespace = "open-cluster-management-cluster-inventory"

// InstallChart is the command that installs the addon on the hub.
func InstallChart() string {
	return "helm install cluster-inventory CHART -n " + UsualNamespace + " --create-namespace # " +
		docs.URL("README.md#use-it")
}
