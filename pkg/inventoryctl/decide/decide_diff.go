package decide

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// Change is what the manager would do with one pair.
type Change struct {
	Action    inventory.Action `json:"action"`
	Namespace string           `json:"namespace"`
	Cluster   string           `json:"cluster"`

	// Why completes a sentence that begins with the cluster.
	Why string `json:"why,omitempty"`

	// Fields are the parts of the profile that would be written.
	Fields []string `json:"fields,omitempty"`
}

// Difference is what would change if the manager were on.
type Difference struct {
	Changes    []Change `json:"changes"`
	NotVisible []string `json:"notVisible,omitempty"`
}

// Differ collects what the manager would do with pairs.
type Differ struct {
	// LabelAllow are the patterns of labels that the manager copies, Limits those of profiles, and
	// Now is the time.
	LabelAllow []string
	Limits     profiles.Limits
	Now        metav1.Time

	changes []Change
}

// TrimCluster returns the part of a cluster that the manager keeps.
func (d *Differ) TrimCluster(cluster *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	trimmed, _ := d.Limits.Trim(cluster)
	return trimmed
}

// Add decides about one pair.
func (d *Differ) Add(pair types.NamespacedName, f rule.Facts) {
	observation, result := rule.Decide(pair.Name, f)
	preview := inventory.PreviewOf(pair, observation, result, d.LabelAllow, d.Now)
	if preview.Action == "" {
		return
	}
	d.changes = append(d.changes, Change{
		Action: preview.Action, Namespace: pair.Namespace, Cluster: pair.Name, Why: preview.Why, Fields: preview.Fields,
	})
}

// Difference returns the collected changes in a fixed order.
func (d *Differ) Difference(notVisible []string) Difference {
	changes := append([]Change{}, d.changes...)
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(orderOf(a.Action), orderOf(b.Action)), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Cluster, b.Cluster))
	})
	return Difference{Changes: changes, NotVisible: notVisible}
}

// orderOf puts removals first.
func orderOf(action inventory.Action) int {
	return slices.Index([]inventory.Action{
		inventory.ActionRemove, inventory.ActionAdopt, inventory.ActionChange, inventory.ActionCreate,
		inventory.ActionRefuse, inventory.ActionUndecided,
	}, action)
}

// IsChange reports whether something would be written.
func (d Difference) IsChange() bool {
	return slices.ContainsFunc(d.Changes, func(c Change) bool {
		return c.Action != inventory.ActionRefuse && c.Action != inventory.ActionUndecided
	})
}

// Group is the same change for several clusters of a namespace.
type Group struct {
	Action    inventory.Action
	Namespace string
	Clusters  []string

	// What is the reason, or the fields that would be written.
	What string
}

// Groups summarizes the changes.
func (d Difference) Groups() []Group {
	var groups []Group
	at := map[[3]string]int{}
	for _, change := range d.Changes {
		what := strings.Join(change.Fields, ", ")
		if change.Why != "" {
			what = "the cluster " + change.Why
		}
		key := [3]string{string(change.Action), change.Namespace, what}
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, Group{Action: change.Action, Namespace: change.Namespace, What: what})
		}
		groups[i].Clusters = append(groups[i].Clusters, change.Cluster)
	}
	return groups
}
