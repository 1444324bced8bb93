package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
)

func contentOf(t *testing.T, v Values) string {
	t.Helper()
	renderers, err := newTemplates()
	apitest.Must(t, err)
	objects, err := renderers.of(v).render(v)
	apitest.Must(t, err)
	agent := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-agent")
	return agent.Annotations["inventory.open-cluster-management.io/content"]
}

// The content is the same for all clusters with equal values, and differs for everything
// that changes the Pods.
func TestContentHashDistinguishesAgents(t *testing.T) {
	plain := contentOf(t, values())
	if plain == "" || plain != contentOf(t, values().of("c2", "uid-2")) {
		t.Errorf("content %q is another one on another cluster", plain)
	}
	for name, change := range map[string]func(*Values){
		"image":         func(v *Values) { v.Image = "another" },
		"pull policy":   func(v *Values) { v.PullPolicy = "Never" },
		"pull secrets":  func(v *Values) { v.PullSecrets = []string{"another"} },
		"namespace":     func(v *Values) { v.InstallNamespace = "another" },
		"claim limit":   func(v *Values) { v.ClaimLimit++ },
		"reserved name": func(v *Values) { v.ReservedProperties = []string{"x"} },
		"log level":     func(v *Values) { v.LogLevel++ },
		"log format":    func(v *Values) { v.JSONLogs = true },
		"node selector": func(v *Values) { v.NodeSelector = map[string]string{"a": "b"} },
		"proxy":         func(v *Values) { v.Proxy.HTTPS = "http://proxy" },
	} {
		v := values()
		change(&v)
		if contentOf(t, v) == plain {
			t.Errorf("another %s has the same content", name)
		}
	}
	v := values()
	v.Manifests = embedded.Previous
	if content := contentOf(t, v); content != "" {
		t.Errorf("the previous manifests, which had none, have content %q", content)
	}
}

func TestRulesAreForTheAgentInTheWork(t *testing.T) {
	agent := func(annotations string) workv1.Manifest {
		return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cluster-inventory-agent","annotations":` +
				annotations + `}}`,
		)}}
	}
	other := workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"kind":"Deployment","metadata":{"name":"other"}}`)}}
	options := func() []workv1.ManifestConfigOption {
		return []workv1.ManifestConfigOption{{ResourceIdentifier: AgentDeployment("*")},
			{ResourceIdentifier: AgentDeployment("**")}}
	}
	for name, test := range map[string]struct {
		manifests []workv1.Manifest
		want      string // the first rule, which tells agents apart
	}{
		"no agent": {manifests: []workv1.Manifest{other}},
		"an agent of a content": {
			manifests: []workv1.Manifest{other, agent(`{"inventory.open-cluster-management.io/content":"c1"}`)},
			want: "has(object.metadata.annotations) && 'inventory.open-cluster-management.io/content' in object.metadata.annotations" +
				" && object.metadata.annotations['inventory.open-cluster-management.io/content'] == 'c1'",
		},
		"an agent before there was that": {
			manifests: []workv1.Manifest{agent("{}")},
			want: "!(has(object.metadata.annotations) && " +
				"'inventory.open-cluster-management.io/content' in object.metadata.annotations)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := options()
			ruled, err := WithRules(before, test.manifests)
			apitest.Must(t, err)
			if diff := cmp.Diff(options(), before); diff != "" {
				t.Errorf("the options that were given, which others share, were changed:\n%s", diff)
			}
			if test.want == "" {
				if diff := cmp.Diff(before, ruled); diff != "" {
					t.Errorf("options (-want +got):\n%s", diff)
				}
				return
			}
			if len(ruled[0].ConditionRules) > 0 || len(ruled[1].ConditionRules) != 1 {
				t.Fatalf("options %+v", ruled)
			}
			if got := ruled[1].ConditionRules[0].CelExpressions[0]; got != test.want {
				t.Errorf("the rule is %s, want %s", got, test.want)
			}
			if diff := cmp.Diff(options(), withoutRules(ruled)); diff != "" {
				t.Errorf("without the rules (-want +got):\n%s", diff)
			}
		})
	}
}
