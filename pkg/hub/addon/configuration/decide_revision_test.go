package configuration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

func TestDecideRevision(t *testing.T) {
	known := map[string]*configuration{
		"one": {hash: "h1", values: manifests.Values{Revision: manifests.Revision{Image: "v1"}}},
		"bad": {hash: "h1", errors: fieldErrors{"spec.a: is wrong"}},
	}
	one := addonv1beta1.AddOnConfig{
		ConfigGroupResource: addontest.AgentRevisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: "one"},
	}
	gets := func(name, hash string) func(*addonv1beta1.ManagedClusterAddOn) {
		return func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.ConfigReferences = append(a.Status.ConfigReferences, addonv1beta1.ConfigReference{
				ConfigGroupResource: addontest.AgentRevisions,
				DesiredConfig: &addonv1beta1.ConfigSpecHash{
					ConfigReferent: addonv1beta1.ConfigReferent{Name: name}, SpecHash: hash,
				},
			})
		}
	}
	definition := func(configs ...addonv1beta1.AddOnConfig) *addonv1beta1.ClusterManagementAddOn {
		d := &addonv1beta1.ClusterManagementAddOn{}
		d.Name, d.Spec.DefaultConfigs = "cluster-inventory", configs
		return d
	}
	ofAPlacement := definition()
	ofAPlacement.Spec.InstallStrategy.Placements = []addonv1beta1.PlacementStrategy{{Configs: []addonv1beta1.AddOnConfig{one}}}
	type change = func(*addonv1beta1.ManagedClusterAddOn)
	looked := func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{ocmtest.Condition("Configured", "True", "ConfigurationsConfigured", "")}
	}
	names := func(a *addonv1beta1.ManagedClusterAddOn) { a.Spec.Configs = []addonv1beta1.AddOnConfig{one} }
	tests := map[string]struct {
		addon      []change
		definition *addonv1beta1.ClusterManagementAddOn
		unread     bool
		want       choice
		refused    string
	}{
		"it is the cluster's turn": {
			addon: []change{gets("one", "h1")}, definition: definition(one),
			want: choice{known: true, name: "one", configuration: known["one"]},
		},
		"another configuration is of another kind": {
			addon: []change{refersTo("good", "h1"), gets("one", "h1")}, definition: definition(one),
			want: choice{known: true, name: "one", configuration: known["one"]},
		},
		"it was recreated with other content": {addon: []change{gets("one", "h0")}, definition: definition(one)},
		"its hash is not known yet":           {addon: []change{gets("one", "")}, definition: definition(one)},
		"it is wrong": {
			addon: []change{gets("bad", "h1")}, refused: "InvalidConfiguration: AgentRevision bad: spec.a: is wrong",
		},
		"it does not exist": {
			addon:   []change{gets("gone", "h1")},
			refused: "ConfigurationMissing: AgentRevision gone, which the addon refers to, does not exist",
		},
		"revisions are not read yet": {addon: []change{gets("one", "h1")}, definition: definition(one), unread: true},
		"nor is the one that is missing": {
			addon: []change{gets("gone", "h1")}, definition: definition(one), unread: true,
		},
		"there are two": {
			addon:   []change{gets("one", "h1"), gets("bad", "h1")},
			refused: "InvalidConfiguration: The addon has 2 AgentRevisions, but only one is allowed: one, bad",
		},
		"the cluster's turn has not come":                               {definition: definition(one)},
		"nor that of a cluster of a Placement":                          {definition: ofAPlacement},
		"the cluster names one, which OCM has not seen":                 {addon: []change{names}, definition: definition()},
		"there is no definition to tell":                                {},
		"OCM says that it has none, which a new definition contradicts": {addon: []change{looked}, definition: definition(one)},
		"there is none at all": {
			definition: definition(),
			refused: "ConfigurationMissing: ClusterManagementAddOn cluster-inventory names no " +
				"AgentRevision among its defaultConfigs",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addon := ocmtest.Addon("c1")
			for _, change := range test.addon {
				change(addon)
			}
			find := func(name addonv1beta1.ConfigReferent) *configuration { return known[name.Name] }
			if test.unread {
				find = nil
			}
			got, refused := decideRevision(addon, test.definition, find)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			checkRefusal(t, test.refused, refused)
		})
	}
}

func TestValidateRevision(t *testing.T) {
	good := func() map[string]any {
		return map[string]any{
			"manifests": "1", "image": "example.com/inventory:v1", "imagePullPolicy": "Always",
			"imagePullSecrets": []any{"a", "b"}, "installNamespace": "agents", "claimLimit": int64(7), "logLevel": int64(2),
			"logFormat": "json", "reservedProperties": []any{"*.example.com", "x"},
			"networkPolicy": map[string]any{
				"apiServerCIDRs": []any{"192.0.2.0/24"}, "apiServerPorts": []any{int64(6443)}, "dnsPorts": []any{int64(53)},
			},
			"podSecurityContext": map[string]any{"runAsUser": int64(5), "runAsGroup": int64(6), "fsGroup": int64(0)},
		}
	}
	want := manifests.Values{JSONLogs: true, Revision: manifests.Revision{
		Manifests: "1", Image: "example.com/inventory:v1", PullPolicy: "Always", PullSecrets: []string{"a", "b"},
		InstallNamespace: "agents", ClaimLimit: 7, LogLevel: 2, ReservedProperties: []string{"*.example.com", "x"},
		NetworkPolicy: &manifests.NetworkPolicy{
			APIServerCIDRs: []string{"192.0.2.0/24"}, APIServerPorts: []int32{6443}, DNSPorts: []int32{53},
		},
		Users: manifests.PodUsers{RunAsUser: ptr.To[int64](5), RunAsGroup: ptr.To[int64](6), FSGroup: ptr.To[int64](0)},
	}}
	got, wrong := validateRevision(good())
	if diff := cmp.Diff(want, got); diff != "" || len(wrong) > 0 {
		t.Errorf("errors %q, values (-want +got):\n%s", wrong, diff)
	}
	for name, test := range map[string]struct {
		field string
		value any
		want  string
	}{
		"manifests of a later version": {"manifests", "3", `spec.manifests: "3" is not one of this manager's revisions, which are 1 and 2`},
		"no manifests":                 {"manifests", "", `spec.manifests: "" is not one of this manager's revisions, which are 1 and 2`},
		"no image":                     {"image", "", `spec.image: "" is not an image`},
		"an image with a space":        {"image", "a b", `spec.image: "a b" is not an image`},
		"a pull policy that is none":   {"imagePullPolicy", "Sometimes", `spec.imagePullPolicy: "Sometimes" is not one of Always, IfNotPresent, Never`},
		"a pattern that is none":       {"reservedProperties", []any{"a["}, `spec.reservedProperties: "a[" is not a pattern of names`},
		"two patterns in one":          {"reservedProperties", []any{"a,b"}, `spec.reservedProperties: "a,b" is not a pattern of names`},
		"a negative limit":             {"claimLimit", int64(-1), "spec.claimLimit: -1 is negative"},
		"a negative level":             {"logLevel", int64(-1), "spec.logLevel: -1 is negative"},
		"a log format that is none":    {"logFormat", "xml", `spec.logFormat: "xml" is not text or json`},
		"root": {
			"podSecurityContext", map[string]any{"runAsUser": int64(0)}, "spec.podSecurityContext.runAsUser: 0 is root, or no user",
		},
		"a group that is none": {
			"podSecurityContext", map[string]any{"fsGroup": int64(-1)}, "spec.podSecurityContext.fsGroup: -1 is negative",
		},
		"a network that is none": {
			"networkPolicy", map[string]any{
				"apiServerCIDRs": []any{"all"}, "apiServerPorts": []any{int64(1)}, "dnsPorts": []any{int64(1)},
			}, `spec.networkPolicy.apiServerCIDRs: "all" is not a network, such as 192.0.2.0/24`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := good()
			spec[test.field] = test.value
			got, wrong := validateRevision(spec)
			if diff := cmp.Diff(fieldErrors{test.want}, wrong); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(manifests.Values{}, got); diff != "" {
				t.Errorf("values of what is wrong: %s", diff)
			}
		})
	}
	for field, value := range map[string]any{
		"installNamespace": "Not_One", "imagePullSecrets": []any{"a b"}, "claimLimit": "many",
	} {
		spec := good()
		spec[field] = value
		if got, wrong := validateRevision(spec); len(wrong) != 1 || got.Image != "" {
			t.Errorf("%s %v: %q", field, value, wrong)
		}
	}
}

// The refusal to move an agent must name the object that asked for it.
func TestRefusalNamesTheRevisionsNamespace(t *testing.T) {
	revision := choice{known: true, name: "r", configuration: &configuration{values: values()}}
	_, refused := decideValues(revision, choice{known: true}, Location{There: manifests.Deployed{Namespace: "elsewhere"}})
	checkRefusal(t, "InstallNamespaceChanged: AgentRevision r: spec.installNamespace is agents, but the agent runs in elsewhere "+
		"and is not moved; set it back, or disable the addon on this cluster first", refused)
}
