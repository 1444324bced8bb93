package agents

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// gathered returns the series of the metrics that this package reports, as name{label=value,...}.
func gathered(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	apitest.Must(t, registry.Register(m))
	families, err := registry.Gather()
	apitest.Must(t, err)
	series := map[string]float64{}
	for _, family := range families {
		if name := family.GetName(); name != "cluster_inventory_addons" && name != "cluster_inventory_agents" {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := family.GetName()[len("cluster_inventory_"):]
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			series[key] = metric.GetGauge().GetValue()
		}
	}
	return series
}

func newReporter(m *metrics.Metrics) *Reporter { return &Reporter{counter: m} }

func addonWith(cluster, revision string, conditions ...metav1.Condition) *addonv1beta1.ManagedClusterAddOn {
	addon := ocmtest.Addon(cluster)
	addon.Status.Conditions = conditions
	if revision != "" {
		addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
			ConfigGroupResource: revisions,
			DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: revision}},
		}}
	}
	return addon
}

func definitionNaming(name, before string) *addonv1beta1.ClusterManagementAddOn {
	d := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	d.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: revisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: name},
	}}
	d.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
		ConfigReferences: []addonv1beta1.InstallConfigReference{{
			ConfigGroupResource: revisions,
			LastKnownGoodConfig: &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: before}},
		}},
	}}
	return d
}

func TestCountsFollowAddons(t *testing.T) {
	m := metrics.New(metrics.Options{})
	r := newReporter(m)
	on := kube.OnEvent(r.onAddon)
	kube.OnEvent(r.onDefinition).OnAdd(definitionNaming("new", "old"), true)
	completed := ocmtest.Condition("Progressing", "False", "Completed", "")
	waits := ocmtest.Condition("Configured", "False", "R", "")
	down := ocmtest.Condition("PropertiesPublished", "False", "HubKubeconfigInvalid", "")
	up := ocmtest.Condition("PropertiesPublished", "True", "Published", "")
	first := addonWith("a", "new", completed, down)
	on.OnAdd(first, true)
	on.OnAdd(addonWith("b", "old", waits, down), true)
	on.OnAdd(addonWith("c", "made up"), true)
	on.OnAdd(addonWith("d", ""), true)
	other := addonWith("e", "new")
	other.Name = "another-addon"
	on.OnAdd(other, true)
	want := map[string]float64{
		"addons PropertiesPublished HubKubeconfigInvalid False": 2, "agents new Completed": 1, "agents old Waiting": 1,
		"agents Other Unknown": 1, "agents None Unknown": 1,
	}
	if diff := cmp.Diff(want, gathered(t, m)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	repaired := addonWith("a", "new", completed, up)
	on.OnUpdate(first, repaired)
	on.OnUpdate(repaired, repaired)
	on.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: addonWith("b", "old")})
	on.OnDelete(addonWith("c", ""))
	on.OnDelete(addonWith("never seen", ""))
	want = map[string]float64{
		"addons PropertiesPublished Published True": 1, "agents new Completed": 1, "agents None Unknown": 1,
	}
	if diff := cmp.Diff(want, gathered(t, m)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// An agent may write any text into the status of its addon.
func TestMadeUpTextsMakeNoSeries(t *testing.T) {
	m := metrics.New(metrics.Options{})
	r := newReporter(m)
	on := kube.OnEvent(r.onAddon)
	kube.OnEvent(r.onDefinition).OnAdd(definitionNaming("new", "old"), true)
	addon := addonWith("a", "new", ocmtest.Condition("Degraded", "False", "AsExpected", ""))
	on.OnAdd(addon, true)
	before := len(gathered(t, m))
	for i := range 10_000 {
		text := fmt.Sprintf("MadeUp%d", i)
		next := addonWith("a", text, ocmtest.Condition("Degraded", text, text, ""), ocmtest.Condition(text, "True", text, ""))
		on.OnUpdate(addon, next)
		addon = next
	}
	got := gathered(t, m)
	want := map[string]float64{"addons Degraded Other Unknown": 1, "agents Other Unknown": 1}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != before {
		t.Errorf("%d series, were %d (-want +got):\n%s", len(got), before, diff)
	}
	for i := range 10_000 {
		text := fmt.Sprintf("MadeUp%d", i)
		on.OnAdd(addonWith(fmt.Sprint("c", i), text, ocmtest.Condition("Degraded", "True", text, "")), true)
	}
	want = map[string]float64{
		"addons Degraded Other Unknown": 1, "addons Degraded Other True": 10_000, "agents Other Unknown": 10_001,
	}
	if diff := cmp.Diff(want, gathered(t, m)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}
