package decide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// pairs are facts by namespace and cluster.
type pairs map[types.NamespacedName]rule.Facts

func (p pairs) Facts(pair types.NamespacedName) rule.Facts { return p[pair] }

func TestMatrix(t *testing.T) {
	at := func(namespace, cluster string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: cluster}
	}
	noAddon := func(p *PairFacts) { p.Facts.Addon = nil }
	hidden := func(p *PairFacts) { p.Facts.Hidden.Clusters, p.Facts.Cluster = true, nil }
	source := pairs{
		at("a", "published"): published().Facts,
		at("a", "failed"):    published(without, says("ProfilesSynced", "False", "WriteFailed", "Quota.")).Facts,
		at("a", "pending"):   published(without).Facts,
		at("a", "foreign"): published(func(p *PairFacts) {
			p.Facts.Profile.Spec.ClusterManager.Name = "other"
		}).Facts,
		at("b", "published"): published(without, noAddon).Facts,
		at("b", "failed"):    published(without, noAddon).Facts,
		at("b", "pending"):   published(without, hidden).Facts,
		at("b", "foreign"):   published(hidden).Facts,
	}
	const (
		hasNoAddon = "does not have the addon cluster-inventory"
		unknown    = "is not known to you: you may not read ManagedClusters"
	)
	clusters := []string{"failed", "foreign", "pending", "published"}
	got := MatrixOf(source, []string{"a", "b"}, clusters, false, true)
	want := Matrix{
		Clusters: clusters,
		Rows: []Row{
			{
				Namespace: "a", Published: 1, Failed: 2, Unknown: 1,
				MostlyBecause: `has a ClusterProfile of cluster manager "other" in its place`, MostlyCount: 1,
			},
			{Namespace: "b", Published: 1, Withheld: 2, Unknown: 1, MostlyBecause: hasNoAddon, MostlyCount: 2},
		},
		Cells: []Cell{
			{"a", "", "failed", Failed, "is selected, but has no ClusterProfile: Quota. (WriteFailed)"},
			{"a", "", "foreign", Failed, `has a ClusterProfile of cluster manager "other" in its place`},
			{"a", "", "pending", Unknown, "is selected, but its ClusterProfile does not exist yet"},
			{"a", "", "published", Published, ""},
			{"b", "", "failed", Withheld, hasNoAddon},
			{"b", "", "foreign", Published, ""},
			{"b", "", "pending", Unknown, unknown},
			{"b", "", "published", Withheld, hasNoAddon},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("matrix (-want +got):\n%s", diff)
	}
	var states []CellState
	for _, reason := range Reasons(got.Cells) {
		states = append(states, reason.State)
	}
	if diff := cmp.Diff([]CellState{Failed, Failed, Withheld, Unknown, Unknown}, states); diff != "" {
		t.Errorf("order of reasons (-want +got):\n%s", diff)
	}

	folded := MatrixOf(source, []string{"a", "b"}, clusters, false, false)
	if diff := cmp.Diff(want.Rows, folded.Rows); diff != "" || folded.Cells != nil {
		t.Errorf("rows without cells (-want +got):\n%s\n%+v", diff, folded.Cells)
	}
	for _, cell := range MatrixOf(source, []string{"a"}, clusters, true, true).Cells {
		if cell.State != Unknown || cell.Why != "is not known to you: you may not read ClusterProfiles" {
			t.Errorf("profiles are hidden, and yet %+v", cell)
		}
	}
}

func TestPropertyNames(t *testing.T) {
	want := []string{"b", "none", "a"}
	if diff := cmp.Diff(want, PropertyNames([]string{"b", "none", " a ", "b", ""})); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// A cluster that no bound set has is not selected, and one that is kept back is withheld.
func TestNotSelectedIsNotWithheld(t *testing.T) {
	elsewhere := func(p *PairFacts) { p.Facts.Cluster.Labels = nil }
	unaccepted := func(p *PairFacts) { p.Facts.Cluster.Spec.HubAcceptsClient = false }
	notOurs := says("ProfilesSynced", "False", "WriteFailed", "In other: the cluster cannot be published: exceeded quota.")
	unplaced := func(p *PairFacts) { p.Facts.Placements = placement("other") }
	for name, test := range map[string]struct {
		facts PairFacts
		want  CellState
		why   string
	}{
		"in no bound set":             {published(without, elsewhere), NotSelected, "is in no ManagedClusterSet"},
		"in no set, and not accepted": {published(without, elsewhere, unaccepted), NotSelected, "is not accepted"},
		"not accepted":                {published(without, unaccepted), Withheld, "is not accepted"},
		"not placed":                  {published(without, unplaced), Withheld, "is not chosen by a Placement"},
		"another namespace's failure": {published(without, notOurs), Unknown, "does not exist yet"},
	} {
		t.Run(name, func(t *testing.T) {
			pair := types.NamespacedName{Namespace: "ns", Name: "c"}
			got := cellOf(pair, test.facts.Facts, false)
			if got.State != test.want || !strings.Contains(got.Why, test.why) || strings.Contains(got.Why, "quota") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// same has the same facts for all pairs.
type same rule.Facts

func (s same) Facts(types.NamespacedName) rule.Facts { return rule.Facts(s) }

// BenchmarkMatrix decides about 10,000 clusters in 20 namespaces, none of them published.
func BenchmarkMatrix(b *testing.B) {
	clusters, namespaces := make([]string, 10000), make([]string, 20)
	source := same(published(without, func(p *PairFacts) { p.Facts.Placements = placement("other") }).Facts)
	b.ReportAllocs()
	for b.Loop() {
		MatrixOf(source, namespaces, clusters, false, false)
	}
}
