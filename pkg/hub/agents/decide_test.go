package agents

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

var revisions = addonv1beta1.ConfigGroupResource{
	Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
}

func TestOf(t *testing.T) {
	progressing := func(status, reason string) metav1.Condition {
		return ocmtest.Condition("Progressing", status, reason, "")
	}
	began := progressing("True", "R").LastTransitionTime.Time
	configured := ocmtest.Condition("Configured", "True", "R", "")
	waits := ocmtest.Condition("Configured", "False", "ConfigurationsNotConfigured", "")
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       State
		since      time.Time
	}{
		"OCM has not reported":               {nil, Unknown, time.Time{}},
		"configured, and nothing more":       {[]metav1.Condition{configured}, Unknown, time.Time{}},
		"its turn has not come":              {[]metav1.Condition{waits, progressing("False", "Completed")}, Waiting, time.Time{}},
		"it is upgraded":                     {[]metav1.Condition{configured, progressing("True", "Progressing")}, Progressing, began},
		"a canary is first":                  {[]metav1.Condition{configured, progressing("True", "WaitingForCanary")}, Progressing, began},
		"it is done":                         {[]metav1.Condition{configured, progressing("False", "Completed")}, Completed, time.Time{}},
		"it failed":                          {[]metav1.Condition{configured, progressing("False", "Failed")}, Failed, time.Time{}},
		"OCM does not support it":            {[]metav1.Condition{configured, progressing("False", "ConfigurationUnsupported")}, Failed, time.Time{}},
		"something that is not known (yet)":  {[]metav1.Condition{progressing("False", "Other")}, Unknown, time.Time{}},
		"an agent may write another's words": {[]metav1.Condition{progressing("Maybe", "\x1b[2J")}, Unknown, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			addon := ocmtest.Addon("c")
			addon.Status.Conditions = test.conditions
			addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{
				{ConfigGroupResource: revisions},
				{ConfigGroupResource: revisions, DesiredConfig: &addonv1beta1.ConfigSpecHash{
					ConfigReferent: addonv1beta1.ConfigReferent{Name: "r1"},
				}},
				{DesiredConfig: &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: "other"}}},
			}
			want := Agent{Revision: "r1", State: test.want, Since: test.since}
			if diff := cmp.Diff(want, Of(addon)); diff != "" {
				t.Errorf("agent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	config := func(kind addonv1beta1.ConfigGroupResource, name string) addonv1beta1.AddOnConfig {
		return addonv1beta1.AddOnConfig{
			ConfigGroupResource: kind, ConfigReferent: addonv1beta1.ConfigReferent{Name: name},
		}
	}
	definition := &addonv1beta1.ClusterManagementAddOn{}
	definition.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{
		config(addonv1beta1.ConfigGroupResource{Resource: "agentrevisions"}, "x"), config(revisions, "b"),
	}
	definition.Spec.InstallStrategy.Placements = []addonv1beta1.PlacementStrategy{
		{Configs: []addonv1beta1.AddOnConfig{config(revisions, "a")}},
		{Configs: []addonv1beta1.AddOnConfig{config(revisions, "b")}},
	}
	if diff := cmp.Diff([]string{"a", "b"}, Targets(definition)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if got := Targets(nil); got != nil {
		t.Errorf("without a definition: %v", got)
	}
}
