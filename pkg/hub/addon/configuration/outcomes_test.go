package configuration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
)

func TestConfigurationApplied(t *testing.T) {
	refused := func(reason string, holdBack time.Duration) conditions.Desired {
		return conditions.Desired{Status: metav1.ConditionFalse, Reason: reason, Message: "m", HoldBack: holdBack}
	}
	tests := map[string]struct {
		configured bool
		refused    *Refusal
		want       conditions.Desired
	}{
		"no configuration, no condition": {want: conditions.Desired{Absent: true}},
		"a configuration": {configured: true, want: conditions.Desired{
			Status: metav1.ConditionTrue, Reason: "Applied", Message: "The agent's manifests match its configuration.",
		}},
		"one that is wrong is reported at once": {
			refused: &Refusal{Reason: "InvalidConfiguration", Message: "m"},
			want:    refused("InvalidConfiguration", 0),
		},
		"one that moves the agent is reported at once": {
			configured: true, refused: &Refusal{Reason: "InstallNamespaceChanged", Message: "m"},
			want: refused("InstallNamespaceChanged", 0),
		},
		"one that is missing may be replaced": {
			refused: &Refusal{Reason: "ConfigurationMissing", Message: "m"},
			want:    refused("ConfigurationMissing", 5*time.Second),
		},
		"one for another manager may be for the next leader": {
			refused: &Refusal{Reason: "InvalidConfiguration", Message: "m", UnknownManifests: true},
			want:    refused("InvalidConfiguration", time.Minute),
		},
		"a spoke that refuses may take it later": {
			refused: &Refusal{Reason: "ManifestsRefused", Message: "m"},
			want:    refused("ManifestsRefused", 30*time.Second),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, configurationApplied(test.configured, test.refused)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutcomesAnnounceChanges(t *testing.T) {
	var notified []string
	o := NewOutcomes(nil)
	o.Subscribe(func(cluster string) { notified = append(notified, cluster) })
	wrong := func(message string) Decision { return Decision{Refused: refuse("R", "%s", message)} }
	fine, configured := Decision{Known: true}, Decision{Known: true, Configured: true}
	for _, step := range []struct {
		cluster string
		decided Decision
	}{
		{"a", fine}, {"a", fine}, {"b", wrong("1")}, {"b", wrong("1")}, {"b", wrong("2")},
		{"b", configured}, {"b", configured}, {"a", fine},
	} {
		o.Record(step.cluster, step.decided, "")
	}
	if diff := cmp.Diff([]string{"a", "b", "b", "b"}, notified); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
	o.Forget("a")
	if all := o.byCluster.All(); len(all) != 1 {
		t.Errorf("remembered: %v", all)
	}
}
