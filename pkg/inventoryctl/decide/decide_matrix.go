package decide

import (
	"cmp"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// CellState is the state of one pair of namespace and cluster.
type CellState string

const (
	// Published means that there is a ClusterProfile of Open Cluster Management.
	Published CellState = "published"
	// NotSelected means that no set that is bound in the namespace has the cluster.
	NotSelected CellState = "not selected"
	// Withheld means that a set that is bound in the namespace has the cluster, or may have it, and
	// that there must be no ClusterProfile: what the metric cluster_inventory_withheld counts.
	Withheld CellState = "withheld"
	// Failed means that there should be a ClusterProfile, and it cannot be written.
	Failed CellState = "failed"
	// Unknown means that it is undecided whether there must be one, that it is not written yet, or
	// that the reader may not know.
	Unknown CellState = "unknown"
)

// Cell is one pair.
type Cell struct {
	Namespace string    `json:"namespace"`
	Account   string    `json:"account,omitempty"` // of Tokens only
	Cluster   string    `json:"cluster"`
	State     CellState `json:"state"`

	// Why completes a sentence that begins with the cluster; empty if it is published. Of Tokens it
	// is a whole clause, empty if the token is copied.
	Why string `json:"why,omitempty"`
}

// Row summarizes one namespace.
type Row struct {
	Namespace   string `json:"namespace"`
	Published   int    `json:"published"`
	Withheld    int    `json:"withheld"`
	Failed      int    `json:"failed"`
	NotSelected int    `json:"notSelected"`
	Unknown     int    `json:"unknown"`

	// MostlyBecause is the most frequent reason why clusters that are selected are not published,
	// and MostlyCount how many have it.
	MostlyBecause string `json:"mostlyBecause,omitempty"`
	MostlyCount   int    `json:"mostlyCount,omitempty"`
}

// Matrix says which namespaces see which clusters.
type Matrix struct {
	Clusters []string `json:"clusters"`
	Rows     []Row    `json:"namespaces"`

	// Cells are by namespace, then by cluster; nil if only the rows were wanted.
	Cells []Cell `json:"cells,omitempty"`

	// NotVisible names the kinds that the reader may not read.
	NotVisible []string `json:"notVisible,omitempty"`
}

// Source provides the facts for decisions about pairs (gather.Snapshot).
type Source interface {
	Facts(pair types.NamespacedName) rule.Facts
}

// MatrixOf decides about every pair of namespaces and clusters. hiddenProfiles is true if
// ClusterProfiles may not be read.
func MatrixOf(source Source, namespaces, clusters []string, hiddenProfiles, withCells bool) Matrix {
	m := Matrix{Clusters: clusters, Rows: []Row{}}
	for _, namespace := range namespaces {
		row := Row{Namespace: namespace}
		reasons := map[string]int{}
		for _, cluster := range clusters {
			pair := types.NamespacedName{Namespace: namespace, Name: cluster}
			cell := cellOf(pair, source.Facts(pair), hiddenProfiles)
			row.count(cell.State)
			if cell.Why != "" && cell.State != NotSelected {
				reasons[cell.Why]++
			}
			if withCells {
				m.Cells = append(m.Cells, cell)
			}
		}
		row.MostlyBecause, row.MostlyCount = most(reasons)
		m.Rows = append(m.Rows, row)
	}
	return m
}

func (r *Row) count(state CellState) {
	switch state {
	case Published:
		r.Published++
	case Withheld:
		r.Withheld++
	case Failed:
		r.Failed++
	case NotSelected:
		r.NotSelected++
	case Unknown:
		r.Unknown++
	}
}

// most returns the most frequent reason; the first of equally frequent ones.
func most(reasons map[string]int) (reason string, count int) {
	for candidate, n := range reasons {
		if n > count || n == count && candidate < reason {
			reason, count = candidate, n
		}
	}
	return reason, count
}

func cellOf(pair types.NamespacedName, f rule.Facts, hiddenProfiles bool) Cell {
	cell := Cell{Namespace: pair.Namespace, Cluster: pair.Name}
	switch {
	case hiddenProfiles:
		cell.State, cell.Why = Unknown, rule.NotVisible+"ClusterProfiles"
	case f.Profile != nil && rule.IsOurs(f.Profile):
		cell.State = Published
	case f.Profile != nil:
		cell.State, cell.Why = Failed, foreignProfile(f)
	default:
		cell.State, cell.Why = absent(pair, f)
	}
	return cell
}

func foreignProfile(f rule.Facts) string {
	return fmt.Sprintf("has a ClusterProfile of cluster manager %s in its place",
		kube.Quote(f.Profile.Spec.ClusterManager.Name))
}

// absent returns why there is no profile.
func absent(pair types.NamespacedName, f rule.Facts) (CellState, string) {
	_, result := rule.Decide(pair.Name, f)
	switch {
	case result.Answer == rule.No && len(result.Bindings) == 0:
		return NotSelected, result.Why
	case result.Answer == rule.No:
		return Withheld, result.Why
	case result.Answer == rule.Unknown:
		return Unknown, result.Why
	default:
		return notWritten(f.Addon, pair.Namespace)
	}
}

// MaxMessageBytes is how much of a condition's message is shown.
const MaxMessageBytes = 300

// notWritten returns why a profile that must exist in a namespace does not, according to the
// cluster's addon.
func notWritten(addon *addonv1beta1.ManagedClusterAddOn, namespace string) (CellState, string) {
	if condition := ConditionOf(addon, contract.ConditionProfilesSynced); condition != nil &&
		condition.Status != metav1.ConditionTrue {
		if why := concerning(condition.Message, namespace); why != "" {
			return Failed, fmt.Sprintf("is selected, but has no ClusterProfile: %s (%s)",
				kube.Shorten(why, MaxMessageBytes), kube.Shorten(condition.Reason, MaxMessageBytes))
		}
	}
	return Unknown, "is selected, but its ClusterProfile does not exist yet"
}

// ConditionOf returns a condition of an addon, nil if there is no addon or no such condition.
func ConditionOf(addon *addonv1beta1.ManagedClusterAddOn, conditionType string) *metav1.Condition {
	if addon == nil {
		return nil
	}
	return apimeta.FindStatusCondition(addon.Status.Conditions, conditionType)
}

// HiddenKinds names the kinds that are hidden, in a fixed order.
func HiddenKinds(hidden rule.Hidden, profiles bool) []string {
	var names []string
	for _, kind := range []struct {
		hidden bool
		name   string
	}{
		{profiles, "ClusterProfiles"},
		{hidden.Clusters, "ManagedClusters"},
		{hidden.Addons, "ManagedClusterAddOns"},
		{hidden.Bindings, "ManagedClusterSetBindings"},
		{hidden.Sets, "ManagedClusterSets"},
		{hidden.Placements, "Placements"},
		{hidden.Decisions, "PlacementDecisions"},
		{hidden.Namespaces, "Namespaces"},
	} {
		if kind.hidden {
			names = append(names, kind.name)
		}
	}
	return names
}

// Reason is the reason why some pairs of a matrix are not published, or some tokens not copied.
type Reason struct {
	State CellState
	Why   string
	Pairs []string // namespace/cluster, or namespace/account/cluster
}

// Reasons groups the cells that have a reason by it.
func Reasons(cells []Cell) []Reason {
	type key struct {
		state CellState
		why   string
	}
	pairs := map[key][]string{}
	for _, cell := range cells {
		if cell.Why == "" {
			continue
		}
		name := cell.Namespace + "/" + cell.Cluster
		if cell.Account != "" {
			name = cell.Namespace + "/" + cell.Account + "/" + cell.Cluster
		}
		k := key{cell.State, cell.Why}
		pairs[k] = append(pairs[k], name)
	}
	var reasons []Reason
	for k, list := range pairs {
		reasons = append(reasons, Reason{State: k.state, Why: k.why, Pairs: list})
	}
	slices.SortFunc(reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(placeOf(a.State), placeOf(b.State)), cmp.Compare(a.Why, b.Why))
	})
	return reasons
}

// placeOf puts first what needs a user to act.
func placeOf(state CellState) int {
	return slices.Index([]CellState{Failed, Withheld, Unknown, NotSelected}, state)
}
