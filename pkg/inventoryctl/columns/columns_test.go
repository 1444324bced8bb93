package columns

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestValues(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "east"},
		"status": map[string]any{"properties": []any{
			map[string]any{"name": "a", "value": "{{.x}}\x1b[2J"}, map[string]any{"name": "b", "value": "2"},
		}},
	}}
	const definition = "NAME:.metadata.name,ALL:status.properties[*].name,ONE:.status.properties[?(@.name==\"a\")].value," +
		"NONE:.spec.nothing,WHOLE:{.metadata.name}"
	columns, err := Parse(definition)
	apitest.Must(t, err)
	got, err := Values(columns, object)
	apitest.Must(t, err)
	if diff := cmp.Diff([]string{"east", "a,b", `{{.x}}\x1b[2J`, "", "east"}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for definition, want := range map[string]string{
		"": "is not a column", "NAME": "is not a column", "A:.x,": "is not a column", ":.x": "is not a column",
		"A:.x[": "column A",
	} {
		if _, err := Parse(definition); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", definition, err)
		}
	}
}
