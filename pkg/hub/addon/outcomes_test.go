package addon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
)

func TestConfigurationApplied(t *testing.T) {
	refused := func(reason string, holdBack time.Duration) *conditions.Desired {
		return &conditions.Desired{Status: metav1.ConditionFalse, Reason: reason, Message: "m", HoldBack: holdBack}
	}
	tests := map[string]struct {
		outcome outcome
		want    *conditions.Desired
	}{
		"no configuration, no condition": {want: &conditions.Desired{Absent: true}},
		"a configuration": {outcome: outcome{configured: true}, want: &conditions.Desired{
			Status: metav1.ConditionTrue, Reason: "Applied", Message: "The agent's manifests match its configuration.",
		}},
		"one that is wrong is reported at once": {
			outcome: outcome{refusal: &refusal{reason: "InvalidConfiguration", message: "m"}},
			want:    refused("InvalidConfiguration", 0),
		},
		"one that moves the agent is reported at once": {
			outcome: outcome{configured: true, refusal: &refusal{reason: "InstallNamespaceChanged", message: "m"}},
			want:    refused("InstallNamespaceChanged", 0),
		},
		"one that is missing may be replaced": {
			outcome: outcome{refusal: &refusal{reason: "ConfigurationMissing", message: "m"}},
			want:    refused("ConfigurationMissing", 5*time.Second),
		},
		"one for another manager may be for the next leader": {
			outcome: outcome{refusal: &refusal{reason: "InvalidConfiguration", message: "m", unknownManifests: true}},
			want:    refused("InvalidConfiguration", time.Minute),
		},
		"a spoke that refuses may take it later": {
			outcome: outcome{refusal: &refusal{reason: "ManifestsRefused", message: "m"}},
			want:    refused("ManifestsRefused", 30*time.Second),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, configurationApplied(test.outcome)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutcomesAnnounceChanges(t *testing.T) {
	var told []string
	o := newOutcomes(nil)
	o.Subscribe(func(cluster string) { told = append(told, cluster) })
	wrong := func(message string) outcome { return outcome{refusal: refuse("R", "%s", message)} }
	for _, step := range []struct {
		cluster string
		outcome outcome
	}{
		{"a", outcome{}}, {"a", outcome{}}, {"b", wrong("1")}, {"b", wrong("1")}, {"b", wrong("2")},
		{"b", outcome{configured: true}}, {"b", outcome{configured: true}}, {"a", outcome{}},
	} {
		o.set(step.cluster, step.outcome)
	}
	if diff := cmp.Diff([]string{"a", "b", "b", "b"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	o.forget("a")
	if len(o.byCluster) != 1 {
		t.Errorf("remembered: %v", o.byCluster)
	}
}

// After a start, conditions stay until their clusters were reconciled. Unknown outcomes are
// not polled, and delay no other condition.
func TestUnknownOutcomeLeavesTheCondition(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	o := newOutcomes(w)
	desired := func() *conditions.Desired {
		t.Helper()
		desired, err := o.Desired(t.Context(), addon.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		return desired
	}
	if got := desired(); got == nil || !got.Absent {
		t.Errorf("without a condition: %+v", got)
	}
	apitest.EditStatus(w, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{ocmtest.Condition("ConfigurationApplied", "False", "R", "m")}
	})
	asItIs := &conditions.Desired{Status: metav1.ConditionFalse, Reason: "R", Message: "m"}
	if diff := cmp.Diff(asItIs, desired()); diff != "" {
		t.Errorf("with a condition (-want +got):\n%s", diff)
	}
	o.set(addon.Namespace, outcome{})
	if got := desired(); got == nil || !got.Absent {
		t.Errorf("once it is known: %+v", got)
	}
}
