package describe

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
)

// Spokes choose values of properties, so these must not reach the terminal as they are, nor begin
// a line that looks like one of this program.
func TestHostileTextStaysInItsLine(t *testing.T) {
	facts := decide.PairFacts{Namespace: "n", Cluster: "c"}
	profile := &inventoryv1alpha1.ClusterProfile{}
	for name, value := range map[string]string{
		"escape": "\x1b[2J\x1b]0;title\x07", "long": strings.Repeat("x", 1<<20), "lines": "a\nToken:  done\r\tb",
		"template": "{{.Secret}} {.items[*]} %s%n $(id)", "bytes": "\xff\xfe", "direction": "\u202eabc",
	} {
		profile.Status.Properties = append(profile.Status.Properties, inventoryv1alpha1.Property{Name: name, Value: value})
	}
	profile.Status.Conditions = []metav1.Condition{{Type: "T", Status: "True", Reason: "R", Message: "a\x1b[31m\nEvents:"}}
	facts.Facts.Profile = profile
	var out strings.Builder
	apitest.Must(t, Print(&out, Of(facts, nil, false, time.Now()), time.Now()))
	const lines = 7 + 3 + 8 + 1 + 1 // head, conditions, properties, no provider, no event
	if got := strings.Count(out.String(), "\n"); got != lines {
		t.Errorf("%d lines, want %d", got, lines)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 2*maxBytes || strings.ContainsAny(line, "\x1b\x07\r\t\u202e") {
			t.Errorf("%d bytes: %.200q", len(line), line)
		}
	}
	if !strings.Contains(out.String(), "{{.Secret}} {.items[*]} %s%n $(id)") {
		t.Error("text that looks like a template is not shown as it is")
	}
}
