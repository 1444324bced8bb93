package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub"
)

// The manager has these flags, with these defaults.
func TestFlagsAreTheManagers(t *testing.T) {
	defaults := Default()
	managers := hub.NewCommand().Flags()
	count := 0
	defaults.flags().VisitAll(func(flag *pflag.Flag) {
		count++
		switch its := managers.Lookup(flag.Name); {
		case its == nil:
			t.Errorf("the manager has no flag --%s", flag.Name)
		case its.DefValue != flag.DefValue || its.Value.Type() != flag.Value.Type():
			t.Errorf("--%s is the %s %q, but the manager's is the %s %q",
				flag.Name, flag.Value.Type(), flag.DefValue, its.Value.Type(), its.DefValue)
		}
	})
	if count < 12 {
		t.Errorf("only %d flags", count)
	}
}

func TestOf(t *testing.T) {
	tests := map[string]struct {
		values string
		want   func(*Settings)
	}{
		"the chart's own values": {"{}", func(*Settings) {}},
		"other values": {`
profiles: {maxProperties: 1, maxPropertyBytes: 100, labelAllow: ["a/*", b], propertyLabels: [x], exclusiveSetsOnly: true}
upstreamGates: "off"
upstreamRegistrationClusterRole: mine
credentials: {mode: draining, requireTarget: false, upstreamSyncer: "off"}
access: {clusterProxy: {namespace: proxy, url: "https://proxy.example.com"}}
`, func(s *Settings) {
			s.Limits.Properties, s.Limits.PropertyBytes, s.LabelAllow, s.ExclusiveSetsOnly = 1, 100, []string{"a/*", "b"}, true
			s.Limits.PropertyLabels = []string{"x"}
			s.UpstreamGates, s.RegistrationClusterRole, s.UpstreamSyncer = "off", "mine", "off"
			s.CredentialsMode, s.RequireTarget = "draining", false
			s.ClusterProxyNamespace, s.ClusterProxyURL = "proxy", "https://proxy.example.com"
		}},
		"no access through cluster-proxy": {"access: {clusterProxy: {enabled: false}}", func(s *Settings) {
			s.ClusterProxy = false
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := Default()
			want.Known = true
			test.want(&want)
			deployment := manifesttest.Find[appsv1.Deployment](
				t, hubtest.MustRender(t, test.values), "Deployment", "cluster-inventory-manager")
			got := Of(deployment)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Settings{}, "Changed")); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if isDefault := test.values == "{}"; isDefault != (len(got.Changed) == 0) {
				t.Errorf("changed: %v", got.Changed)
			}
		})
	}
}

func TestFlagsOfAnyDeployment(t *testing.T) {
	tests := map[string]struct {
		args    []string
		changed string
		problem string
	}{
		"separate value":      {args: []string{"--unknown", "--max-properties", "7"}, changed: "--max-properties=7"},
		"the last one counts": {args: []string{"--max-properties=7", "--max-properties=9"}, changed: "--max-properties=9"},
		"not a number":        {args: []string{"--max-properties=many"}, problem: "max-properties"},
		"other flags":         {args: []string{"-v=4", "--workers=3", "--metrics-by-namespace"}},
		"none":                {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			deployment := &appsv1.Deployment{}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{
				{Name: "sidecar", Args: []string{"--max-properties=1"}}, {Name: "manager", Args: test.args},
			}
			got := Of(deployment)
			if strings.Join(got.Changed, " ") != test.changed || (got.Problem == "") != (test.problem == "") ||
				!strings.Contains(got.Problem, test.problem) {
				t.Errorf("changed %v, problem %q", got.Changed, got.Problem)
			}
		})
	}
}
