package configuration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

func referent(name string) addonv1beta1.ConfigReferent {
	return addonv1beta1.ConfigReferent{Namespace: "configs", Name: name}
}

// refersTo makes an addon refer to the content of a configuration.
func refersTo(name, hash string) func(*addonv1beta1.ManagedClusterAddOn) {
	return func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.ConfigReferences = append(a.Status.ConfigReferences, addonv1beta1.ConfigReference{
			ConfigGroupResource: addontest.DeploymentConfigs,
			DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: referent(name), SpecHash: hash},
		})
	}
}

func TestDecideConfiguration(t *testing.T) {
	known := map[string]*configuration{
		"configs/good": {hash: "h1", overrides: overrides{installNamespace: "agents"}},
		"configs/bad":  {hash: "h1", errors: fieldErrors{"spec.a: is wrong", "spec.b: is wrong, too"}},
	}
	config := addonv1beta1.AddOnConfig{ConfigGroupResource: addontest.DeploymentConfigs, ConfigReferent: referent("good")}
	forAll := &addonv1beta1.ClusterManagementAddOn{}
	forAll.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{config}
	forSome := &addonv1beta1.ClusterManagementAddOn{}
	forSome.Spec.InstallStrategy.Placements = []addonv1beta1.PlacementStrategy{
		{}, {Configs: []addonv1beta1.AddOnConfig{config}},
	}
	ofOthers := &addonv1beta1.ClusterManagementAddOn{}
	ofOthers.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{
		{ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "example.com", Resource: "others"},
			ConfigReferent: referent("good")},
		{ConfigGroupResource: addontest.DeploymentConfigs,
			ConfigReferent: addonv1beta1.ConfigReferent{Name: "__reserved_no_default__"}},
	}
	isConfigured := func(status string) func(*addonv1beta1.ManagedClusterAddOn) {
		return func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = append(a.Status.Conditions, ocmtest.Condition("Configured", status, "R", ""))
		}
	}
	looked, waits := isConfigured("True"), isConfigured("False")
	names := func(a *addonv1beta1.ManagedClusterAddOn) { a.Spec.Configs = []addonv1beta1.AddOnConfig{config} }
	type change = func(*addonv1beta1.ManagedClusterAddOn)

	tests := map[string]struct {
		addon      []change
		definition *addonv1beta1.ClusterManagementAddOn
		want       choice
		refused    string // reason and message
	}{
		"there is no definition, and OCM has not looked at the cluster yet": {},
		"there is no definition, and the cluster waits":                     {addon: []change{waits}},
		"there is no definition, and OCM has looked": {addon: []change{looked},
			want: choice{known: true}},
		"there is none": {
			definition: &addonv1beta1.ClusterManagementAddOn{}, want: choice{known: true},
		},
		"there is one for all, which OCM has not given to the cluster yet": {definition: forAll},
		"there is one for some, and OCM has not looked at the cluster yet": {definition: forSome},
		"there is one for all, and the cluster waits for its turn":         {addon: []change{waits}, definition: forAll},
		"there is one for some, and the cluster waits for its turn": {addon: []change{waits},
			definition: forSome},
		"there is one for some, and OCM has looked: the cluster is not of them": {addon: []change{looked},
			definition: forSome, want: choice{known: true}},
		"there are configurations of other kinds": {definition: ofOthers,
			want: choice{known: true}},
		"the addon names one, which OCM has not seen yet": {addon: []change{looked, names}},
		"the cluster is to have one": {
			addon: []change{refersTo("good", "h1")}, definition: forAll,
			want: choice{known: true, name: "configs/good", configuration: known["configs/good"]},
		},
		"the cluster is to have one of OCM's reserved name": {
			addon: []change{looked, func(a *addonv1beta1.ManagedClusterAddOn) {
				refersTo("__reserved_no_default__", "")(a)
			}},
			want: choice{known: true},
		},
		"the cluster's turn has not come: the configuration was edited": {addon: []change{refersTo("good", "h0")}},
		"the hash is not known yet":                                     {addon: []change{refersTo("good", "")}},
		"an error in an edit matters only to clusters whose turn has come": {
			addon: []change{refersTo("bad", "h0")},
		},
		"it is wrong": {
			addon:   []change{refersTo("bad", "h1")},
			refused: "InvalidConfiguration: AddOnDeploymentConfig configs/bad: spec.a: is wrong; spec.b: is wrong, too",
		},
		"it does not exist": {
			addon:   []change{refersTo("gone", "h1")},
			refused: "ConfigurationMissing: AddOnDeploymentConfig configs/gone, which the addon refers to, does not exist",
		},
		"it does not exist, and OCM knows": {
			addon:   []change{refersTo("gone", "")},
			refused: "ConfigurationMissing: AddOnDeploymentConfig configs/gone, which the addon refers to, does not exist",
		},
		"there are two": {
			addon: []change{refersTo("good", "h1"), refersTo("bad", "h1")},
			refused: "InvalidConfiguration: The addon has 2 AddOnDeploymentConfigs, but only one is allowed: " +
				"configs/good, configs/bad",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addon := ocmtest.Addon("c1")
			for _, change := range test.addon {
				change(addon)
			}
			got, refused := decideConfiguration(addon, test.definition,
				func(name addonv1beta1.ConfigReferent) *configuration { return known[name.Namespace+"/"+name.Name] })
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			checkRefusal(t, test.refused, refused)
		})
	}
}

func checkRefusal(t *testing.T, want string, got *Refusal) {
	t.Helper()
	text := ""
	if got != nil {
		text = got.Reason + ": " + got.Message
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestDecideValues(t *testing.T) {
	common := values()
	annotation := func(source, mirror string) string {
		return `{"registries":[{"source":"` + source + `","mirror":"` + mirror + `"}]}`
	}
	chosen := func(o overrides) choice {
		return choice{known: true, name: "configs/a", configuration: &configuration{overrides: o}}
	}
	tests := map[string]struct {
		chosen  choice
		at      Location
		change  func(*manifests.Values)
		refused string
	}{
		"nothing": {change: func(*manifests.Values) {}},
		"the namespace of an agent that is not there yet": {
			chosen: chosen(overrides{installNamespace: "elsewhere"}),
			change: func(v *manifests.Values) { v.InstallNamespace = "elsewhere" },
		},
		"the namespace that the agent is in": {
			chosen: chosen(overrides{installNamespace: "elsewhere"}), at: Location{There: manifests.Deployed{Namespace: "elsewhere"}},
			change: func(v *manifests.Values) { v.InstallNamespace = "elsewhere" },
		},
		"another namespace than the agent is in": {
			chosen: chosen(overrides{installNamespace: "elsewhere"}), at: Location{There: manifests.Deployed{Namespace: "agents"}},
			refused: "InstallNamespaceChanged: AddOnDeploymentConfig configs/a: spec.agentInstallNamespace is elsewhere, but the agent " +
				"runs in agents and is not moved; set it back, or disable the addon on this cluster first",
		},
		"another namespace of all clusters than the agent is in": {
			at: Location{There: manifests.Deployed{Namespace: "elsewhere"}},
			refused: "InstallNamespaceChanged: AgentRevision r: spec.installNamespace is agents, but the agent " +
				"runs in elsewhere and is not moved; set it back, or disable the addon on this cluster first",
		},
		"the registries of the cluster": {
			at:     Location{Registries: annotation("example.com", "mirror.example.com")},
			change: func(v *manifests.Values) { v.Image = "mirror.example.com/inventory:v1" },
		},
		"the configuration's registries come first": {
			chosen: chosen(overrides{registries: []addonv1beta1.ImageMirror{{Source: "example.com", Mirror: "first"}}}),
			at:     Location{Registries: annotation("example.com", "second")},
			change: func(v *manifests.Values) { v.Image = "first/inventory:v1" },
		},
		"where they do not match, the cluster's count": {
			chosen: chosen(overrides{registries: []addonv1beta1.ImageMirror{{Source: "quay.io", Mirror: "first"}}}),
			at:     Location{Registries: annotation("example.com", "second")},
			change: func(v *manifests.Values) { v.Image = "second/inventory:v1" },
		},
		"registries of the cluster that are not allowed": {
			at: Location{Cluster: "c1", Registries: annotation("example.com", "evil.example.com")},
			refused: "InvalidConfiguration: The registries of cluster c1 yield the agent's image " +
				"evil.example.com/inventory:v1, which is from none of the registries that the chart allows " +
				"(agent.allowedRegistries)",
		},
		"the configuration's registries that are not allowed": {
			chosen: chosen(overrides{registries: []addonv1beta1.ImageMirror{{Source: "example.com", Mirror: "first.evil"}}}),
			at:     Location{Cluster: "c1"},
			refused: "InvalidConfiguration: The registries of cluster c1 yield the agent's image " +
				"first.evil/inventory:v1, which is from none of the registries that the chart allows " +
				"(agent.allowedRegistries)",
		},
		"registries that are none": {
			at: Location{Cluster: "c1", Registries: "mirror.example.com"},
			refused: "InvalidConfiguration: ManagedCluster c1: annotation open-cluster-management.io/image-registries: " +
				"is not a JSON object with the list registries",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.at.Allowed = []string{"mirror.example.com", "first", "second"}
			revision := choice{known: true, name: "r", configuration: &configuration{values: common}}
			got, refused := decideValues(revision, test.chosen, test.at)
			checkRefusal(t, test.refused, refused)
			if test.change == nil {
				return
			}
			want := common
			test.change(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// A message fits into a condition, and contains no terminal control characters.
func TestRefusalIsShortAndPrintable(t *testing.T) {
	got := refuse("R", "%s\x1b[31m", strings.Repeat("a", 5000))
	if len(got.Message) > 1024 || strings.Contains(got.Message, "\x1b") {
		t.Errorf("%d bytes: %q", len(got.Message), got.Message)
	}
}

// values are those of a cluster without a configuration.
func values() manifests.Values {
	return manifests.Values{
		ClusterName: "c1", AddonUID: "uid-1", Revision: manifests.Revision{
			InstallNamespace: "agents", Image: "example.com/inventory:v1", PullPolicy: "Always", ClaimLimit: 7, LogLevel: 3,
		},
	}
}
