package show

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/golden"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
)

var now = time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)

func TestList(t *testing.T) {
	east, west := ocmtest.OurProfile("team-a", "east"), ocmtest.OurProfile("team-b", "west")
	property := func(name, value string, at metav1.Time) inventoryv1alpha1.Property {
		return inventoryv1alpha1.Property{Name: name, Value: value, LastObservedTime: at}
	}
	east.Labels["multicluster.x-k8s.io/clusterset"] = "prod"
	east.CreationTimestamp = metav1.NewTime(now.Add(-50 * time.Hour))
	east.Status.Version.Kubernetes = "v1.35.4"
	east.Status.Conditions = []metav1.Condition{
		ocmtest.Condition("ControlPlaneHealthy", "True", "R", ""), ocmtest.Condition("Joined", "True", "R", ""),
	}
	east.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "open-cluster-management"}, {Name: "direct"}}
	east.Status.Properties = []inventoryv1alpha1.Property{
		property("a", "1", metav1.NewTime(now.Add(-time.Hour))),
		property("b", "2", metav1.NewTime(now.Add(-90*time.Second))),
		property("region.example.com", "eu-north", metav1.NewTime(now.Add(-2*time.Hour))),
	}
	west.Spec.ClusterManager.Name = "other"
	west.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	west.Status.Conditions = []metav1.Condition{ocmtest.Condition("ControlPlaneHealthy", "Unknown", "R", "")}
	west.Status.Properties = []inventoryv1alpha1.Property{
		property("region.example.com", "a\ttab, a line\nend and an escape \x1b[31m", metav1.Time{}),
		property("tier", "x", metav1.Time{}),
	}
	for name, opts := range map[string]ListOptions{
		"list":            {Headers: true, Properties: []string{"region.example.com", "tier"}},
		"list-wide":       {Headers: true, Properties: []string{"region.example.com", "tier"}, Wide: true, Namespaces: true},
		"list-no-headers": {Properties: []string{"region.example.com", "tier"}, Namespaces: true},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Now = now
			var out bytes.Buffer
			apitest.Must(t, List(&out, [][]string{opts.Row(east, false), opts.Row(west, false)}, opts))
			golden.Check(t, name, out.String())
		})
	}
	ill := ocmtest.OurProfile("ns", "c")
	ill.Status.Conditions = []metav1.Condition{
		ocmtest.Condition("ControlPlaneHealthy", "False", "R", ""), ocmtest.Condition("Joined", "False", "R", ""),
	}
	for name, test := range map[string]struct {
		profile *inventoryv1alpha1.ClusterProfile
		gone    bool
		want    []string // name, version, health, access, newest value, joined, set, properties, manager, age
	}{
		"without a status": {
			ocmtest.OurProfile("ns", "c"), false, []string{"c", "", "", "", "", "", "", "0", "open-cluster-management", ""},
		},
		"ill":     {ill, false, []string{"c", "", "Unhealthy", "", "", "No", "", "0", "open-cluster-management", ""}},
		"deleted": {ill, true, []string{"c", "", "Deleted", "", "", "No", "", "0", "open-cluster-management", ""}},
	} {
		if diff := cmp.Diff(test.want, ListOptions{Now: now}.Row(test.profile, test.gone)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMatrix(t *testing.T) {
	const hasNoAddon = "does not have the addon cluster-inventory"
	m := decide.Matrix{
		Clusters: []string{"east", "west"},
		Rows: []decide.Row{
			{Namespace: "team-a", Published: 2},
			{Namespace: "team-b", Withheld: 1, Failed: 2, NotSelected: 3, Unknown: 1, MostlyBecause: hasNoAddon, MostlyCount: 1},
		},
		Cells: []decide.Cell{
			{Namespace: "team-a", Cluster: "east", State: decide.Published},
			{Namespace: "team-a", Cluster: "west", State: decide.Published},
			{Namespace: "team-b", Cluster: "east", State: decide.Withheld, Why: hasNoAddon},
			{Namespace: "team-b", Cluster: "west", State: decide.Unknown, Why: "is \x1b]0;odd"},
		},
		NotVisible: []string{"ManagedClusterSets"},
	}
	var cells, counts, structured bytes.Buffer
	apitest.Must(t, Matrix(&cells, m))
	NotVisible(&cells, m.NotVisible)
	golden.Check(t, "matrix", cells.String())
	apitest.Must(t, MatrixCounts(&counts, m))
	golden.Check(t, "matrix-counts", counts.String())
	apitest.Must(t, Structured(&structured, FormatJSON, m))
	apitest.Must(t, Structured(&structured, FormatYAML, m))
	golden.Check(t, "matrix-structured", structured.String())
}

func TestTokens(t *testing.T) {
	tokens := decide.Tokens{
		Clusters: []string{"east", "west"},
		Rows: []decide.TokenRow{
			{Namespace: "team-a", Account: "deployer", Failed: 1},
			{Namespace: "team-a", Account: "reader", Copied: 1, Withheld: 1},
		},
		Cells: []decide.Cell{
			{Namespace: "team-a", Account: "deployer", Cluster: "west", State: decide.Failed, Why: "its token \x1b[2Jhas expired"},
			{Namespace: "team-a", Account: "reader", Cluster: "east", State: decide.Copied},
			{Namespace: "team-a", Account: "reader", Cluster: "west", State: decide.Withheld, Why: "the cluster is out"},
		},
		Unnamed: 3,
	}
	var cells, counts bytes.Buffer
	apitest.Must(t, Tokens(&cells, tokens, false))
	golden.Check(t, "tokens", cells.String())
	apitest.Must(t, Tokens(&counts, tokens, true))
	golden.Check(t, "tokens-counts", counts.String())
}

func TestExplanation(t *testing.T) {
	e := decide.Explanation{Cluster: "east", Namespace: "team-a", Steps: []decide.Finding{
		{Name: "addon", State: decide.Done, Text: "the cluster has the addon cluster-inventory"},
		{Name: "set", State: decide.NotVisible, Text: "not visible to you: you may not read ManagedClusterSets"},
		{Name: "placement", State: decide.NotConfigured, Text: "no Placement restricts the namespace"},
		{Name: "profile", State: decide.Missing, Text: "a \x1b[2Jmessage", Fix: "kubectl describe it"},
		{Name: "token", State: decide.Missing, Text: "and more", Fix: "never shown"},
	}}
	e.Events = []decide.Event{
		{Age: "5m", Type: "Warning", Reason: "InvalidSource", Object: "ClusterProfile east", Text: "its token \x1b[2Jhas expired"},
		{Age: "42m", Type: "Normal", Reason: "ProfilesWithheld", Object: "ManagedClusterSetBinding prod", Text: "west is out"},
	}
	var plain, colored, property bytes.Buffer
	Explanation(&plain, e, false)
	golden.Check(t, "explanation", plain.String())
	Explanation(&colored, e, true)
	golden.Check(t, "explanation-colors", fmt.Sprintf("%q\n", colored.String()))
	Explanation(&property, decide.Explanation{Cluster: "east", Property: "region.example.com", Steps: e.Steps[:1]}, false)
	golden.Check(t, "explanation-property", property.String())
}

func TestChecks(t *testing.T) {
	var out bytes.Buffer
	Checks(&out, []decide.Finding{
		{Name: "addon", State: decide.OK, Text: "the addon is installed on the hub"},
		{Name: "claim limit", State: decide.Problem, Text: "cuts off", Fix: "raise it"},
		{Name: "tokens", State: decide.NotConfigured, Text: "no account"},
	}, false)
	golden.Check(t, "checks", out.String())
}

func TestDiff(t *testing.T) {
	d := decide.Difference{}
	for i := range 7 {
		d.Changes = append(d.Changes, decide.Change{
			Action: inventory.ActionRemove, Namespace: "team-a", Cluster: fmt.Sprintf("cluster%d", i), Why: "is gone",
		})
	}
	d.Changes = append(d.Changes,
		decide.Change{Action: inventory.ActionAdopt, Namespace: "team-a", Cluster: "east", Fields: []string{"metadata", "properties"}},
		decide.Change{Action: inventory.ActionCreate, Namespace: "team-b", Cluster: "east"})
	var out bytes.Buffer
	apitest.Must(t, Diff(&out, d))
	golden.Check(t, "diff", out.String())
}
