package report

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

func TestPropertiesAreCountedByState(t *testing.T) {
	m := NewMetrics()
	seen := observed{
		Situation: Situation{API: property.API{Version: "v1beta1"}, Limit: Limit{Custom: 3}},
		properties: append(props("a", "b", "c", "d", "e"),
			property.Property{Name: "empty"}, property.Property{Name: "here", Value: "v", SpokeOnly: true}),
		claims: append(ours("a", "b", "d", "gone"), theirs("c")...),
	}
	m.show(count(seen))
	// c is another client's, d is the fourth claim, and e has none.
	want := map[string]float64{"Published": 2, "CutOff": 1, "LeftOut": 3, "SpokeOnly": 1}
	if diff := cmp.Diff(want, apitest.Shown(t, m, "cluster_inventory_agent_properties")); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	m.show(count(observed{}))
	if diff := cmp.Diff(map[string]float64{}, apitest.Shown(t, m, "cluster_inventory_agent_properties")); diff != "" {
		t.Errorf("without properties (-want +got):\n%s", diff)
	}
}

// TestEveryMetricIsDocumented compares what the agent serves with docs/metrics.md.
func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	apitest.Must(t, err)
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok &&
			strings.HasPrefix(name, "cluster_inventory_agent_") {
			documented[name] = true
		}
	}
	served := map[string]bool{}
	for _, family := range apitest.Gather(t, NewMetrics()) {
		served[family.GetName()] = true
	}
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("metrics (-in docs/metrics.md +served):\n%s", diff)
	}
	for state := range count(observed{}) {
		if !strings.Contains(string(text), "`"+state+"`") {
			t.Errorf("docs/metrics.md does not explain the state %s", state)
		}
	}
}
