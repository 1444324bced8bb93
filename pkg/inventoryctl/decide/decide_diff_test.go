package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

func TestDiffer(t *testing.T) {
	unmarked := func(p *PairFacts) { delete(p.Facts.Profile.Labels, "app.kubernetes.io/managed-by") }
	foreign := func(p *PairFacts) { p.Facts.Profile.Spec.ClusterManager.Name = "other" }
	noAddon := func(p *PairFacts) { p.Facts.Addon = nil }
	undecided := func(p *PairFacts) { p.Facts.Bindings[0].Binding.Status.Conditions = nil }
	inSet := func(p *PairFacts) {
		// As the manager would write it, for the cluster as the fixture has it.
		p.Facts.Profile.Spec.DisplayName = "c"
		p.Facts.Profile.Labels["multicluster.x-k8s.io/clusterset"] = "s"
		p.Facts.Profile.Labels["multicluster.x-k8s.io/inventory-member-id"] = "c"
	}
	withClaim := func(p *PairFacts) {
		p.Facts.Cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "n", Value: "v"}}
	}
	const hasNoAddon = "does not have the addon cluster-inventory"
	tests := map[string]struct {
		p    PairFacts
		want []Change
	}{
		"nothing": {published(inSet), nil},
		"changes": {
			published(inSet, withClaim), []Change{{Action: inventory.ActionChange, Fields: []string{"properties"}}},
		},
		"creates": {published(without), []Change{{Action: inventory.ActionCreate}}},
		"adopts": {
			published(inSet, unmarked, withClaim),
			[]Change{{Action: inventory.ActionAdopt, Fields: []string{"metadata", "properties"}}},
		},
		"removes": {published(inSet, noAddon),
			[]Change{{Action: inventory.ActionRemove, Why: hasNoAddon}}},
		"nothing there, and none wanted":     {published(without, noAddon), nil},
		"another manager's, and none wanted": {published(foreign, noAddon), nil},
		"another manager's in its place": {
			published(foreign), []Change{{
				Action: inventory.ActionRefuse, Why: `has a ClusterProfile of cluster manager "other" in its place`,
			}},
		},
		"left alone": {
			published(unmarked, noAddon), []Change{{
				Action: inventory.ActionRefuse,
				Why:    "has a ClusterProfile that this addon did not create and leaves alone, although the cluster " + hasNoAddon,
			}},
		},
		"undecided": {
			published(without, undecided), []Change{{
				Action: inventory.ActionUndecided,
				Why:    `cannot be selected yet: the condition Bound of ManagedClusterSetBinding "s" is unknown`,
			}},
		},
		"the namespace is going": {
			published(without, func(p *PairFacts) {
				at := metav1.NewTime(now)
				p.Facts.Namespace.DeletionTimestamp = &at
			}),
			[]Change{{Action: inventory.ActionRefuse, Why: "cannot be published: the Namespace is being deleted"}},
		},
		"hidden kinds remove nothing": {
			published(inSet, noAddon, func(p *PairFacts) { p.Facts.Hidden.Addons = true }), []Change{{
				Action: inventory.ActionUndecided, Why: "is not known to you: you may not read ManagedClusterAddOns",
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &Differ{Now: metav1.NewTime(now), Limits: settings.Default().Limits}
			facts := test.p.Facts
			facts.Cluster = d.TrimCluster(facts.Cluster)
			d.Add(types.NamespacedName{Namespace: "ns", Name: "c"}, facts)
			for i := range test.want {
				test.want[i].Namespace, test.want[i].Cluster = "ns", "c"
			}
			if diff := cmp.Diff(append([]Change{}, test.want...), d.Difference(nil).Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDifferenceIsSortedAndGrouped(t *testing.T) {
	d := &Differ{changes: []Change{
		{Action: inventory.ActionCreate, Namespace: "b", Cluster: "2"},
		{Action: inventory.ActionCreate, Namespace: "a", Cluster: "1"},
		{Action: inventory.ActionRefuse, Namespace: "a", Cluster: "3", Why: "is x"},
		{Action: inventory.ActionCreate, Namespace: "b", Cluster: "1"},
		{Action: inventory.ActionRemove, Namespace: "z", Cluster: "9", Why: "is y"},
	}}
	want := []Group{
		{inventory.ActionRemove, "z", []string{"9"}, "the cluster is y"},
		{inventory.ActionCreate, "a", []string{"1"}, ""},
		{inventory.ActionCreate, "b", []string{"1", "2"}, ""},
		{inventory.ActionRefuse, "a", []string{"3"}, "the cluster is x"},
	}
	difference := d.Difference(nil)
	if diff := cmp.Diff(want, difference.Groups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if !difference.IsChange() || (Difference{Changes: difference.Changes[4:]}).IsChange() {
		t.Error("a refusal is no change, the others are")
	}
}
