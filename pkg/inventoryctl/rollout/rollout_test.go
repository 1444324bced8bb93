package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

var (
	now       = time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)
	revisions = addonv1beta1.ConfigGroupResource{
		Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
	}
)

func agent(cluster, revision, status, reason string, since time.Duration) *addonv1beta1.ManagedClusterAddOn {
	addon := ocmtest.Addon(cluster)
	addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
		ConfigGroupResource: revisions,
		DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: revision}},
	}}
	progressing := ocmtest.Condition("Progressing", status, reason, "")
	progressing.LastTransitionTime = metav1.NewTime(now.Add(-since))
	addon.Status.Conditions = []metav1.Condition{progressing}
	return addon
}

func definition(deadline string) *addonv1beta1.ClusterManagementAddOn {
	d := &addonv1beta1.ClusterManagementAddOn{}
	d.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: revisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: "new"},
	}}
	strategy := addonv1beta1.PlacementStrategy{RolloutStrategy: clusterv1alpha1.RolloutStrategy{
		Type:        clusterv1alpha1.Progressive,
		Progressive: &clusterv1alpha1.RolloutProgressive{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: deadline}},
	}}
	d.Spec.InstallStrategy.Placements = []addonv1beta1.PlacementStrategy{strategy}
	d.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
		PlacementRef: addonv1beta1.PlacementRef{Namespace: "ns", Name: "p"},
		Conditions:   []metav1.Condition{ocmtest.Condition("Progressing", "True", "Progressing", "2/5 progressing")},
	}}
	return d
}

func TestReport(t *testing.T) {
	f := Facts{Definition: definition("20m")}
	own := agent("own", "mine", "False", "Completed", 0)
	own.Spec.Configs = f.Definition.Spec.DefaultConfigs
	down := agent("slow", "new", "True", "Progressing", 25*time.Minute)
	down.Status.Conditions = append(down.Status.Conditions, ocmtest.Condition("Available", "False", "R", "no pod is ready"))
	for _, addon := range []*addonv1beta1.ManagedClusterAddOn{
		agent("done", "new", "False", "Completed", time.Hour), own, down,
		agent("moving", "new", "True", "Progressing", time.Minute),
		agent("later", "old", "False", "Completed", time.Hour),
		agent("broken", "new", "False", "Failed", time.Hour),
		ocmtest.Addon("fresh"),
	} {
		f.Add(addon)
	}
	want := Report{
		Targets: []string{"new"}, Total: 7, Done: 2, Progressing: 2, Waiting: 2,
		Counts: []Count{
			{"", "Unknown", 1}, {"mine", "Completed", 1}, {"new", "Completed", 1}, {"new", "Progressing", 2}, {"new", "Failed", 1},
			{"old", "Waiting", 1},
		},
		Failed: []Failure{
			{"broken", "new", "Open Cluster Management could not apply it"},
			{"slow", "new", "it is not available after 25m: no pod is ready"},
		},
		Messages: []string{"Placement ns/p: 2/5 progressing"},
	}
	if diff := cmp.Diff(want, f.Report(now)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestStalled(t *testing.T) {
	for name, test := range map[string]struct {
		deadline string
		addons   []*addonv1beta1.ManagedClusterAddOn
		stalled  bool
		failed   int
	}{
		"none is left": {"None", []*addonv1beta1.ManagedClusterAddOn{
			agent("a", "new", "False", "Completed", time.Hour),
		}, false, 0},
		"one has just begun": {"None", []*addonv1beta1.ManagedClusterAddOn{
			agent("a", "new", "True", "Progressing", time.Hour), agent("b", "new", "True", "Progressing", time.Minute),
		}, false, 0},
		"all began long ago": {"None", []*addonv1beta1.ManagedClusterAddOn{
			agent("a", "new", "True", "Progressing", time.Hour), agent("b", "old", "False", "Completed", 0),
		}, true, 0},
		"one failed, and the others are not begun": {"", []*addonv1beta1.ManagedClusterAddOn{
			agent("a", "new", "False", "Failed", time.Hour), agent("b", "old", "False", "Completed", 0),
		}, true, 1},
		"the others wait, for instance for minSuccessTime": {"1h", []*addonv1beta1.ManagedClusterAddOn{
			agent("a", "new", "False", "Completed", time.Hour), agent("b", "old", "False", "Completed", 0),
		}, false, 0},
		"a deadline without meaning": {"soon", []*addonv1beta1.ManagedClusterAddOn{
			agent("a", "new", "True", "Progressing", time.Hour),
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Definition: definition(test.deadline)}
			for _, addon := range test.addons {
				f.Add(addon)
			}
			if got := f.Report(now); got.Stalled != test.stalled || len(got.Failed) != test.failed {
				t.Errorf("stalled %v, failed %v", got.Stalled, got.Failed)
			}
		})
	}
}

func TestHidden(t *testing.T) {
	f := Facts{HiddenDefinition: true}
	f.Add(agent("a", "new", "False", "Completed", 0))
	got := f.Report(now)
	if got.Done != 1 || len(got.Targets) != 0 || fmt.Sprint(got.NotVisible) != "[the ClusterManagementAddOn]" {
		t.Errorf("%+v", got)
	}
}
