package upstream

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRegistrationVerdict(t *testing.T) {
	withRules := func(rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole { return &rbacv1.ClusterRole{Rules: rules} }
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	unrelated := rule("cluster.open-cluster-management.io", "managedclusters", "get", "update")

	tests := map[string]struct {
		role     *rbacv1.ClusterRole
		override Override
		reason   string
	}{
		"the role does not mention profiles: the gate is off": {role: withRules(unrelated), override: OverrideNone},
		"the role may create profiles: the gate is on": {
			role:     withRules(unrelated, rule("multicluster.x-k8s.io", "clusterprofiles", "get", "create")),
			override: OverrideNone,
			reason:   "UpstreamGateOn",
		},
		"everything is allowed, including profiles: the gate may be on": {
			role:     withRules(rule("*", "*", "*")),
			override: OverrideNone,
			reason:   "UpstreamGateOn",
		},
		"reading profiles alone is harmless": {
			role:     withRules(rule("multicluster.x-k8s.io", "clusterprofiles", "get", "list", "watch")),
			override: OverrideNone,
		},
		"other resources of the group are harmless": {
			role:     withRules(rule("multicluster.x-k8s.io", "placementdecisions", "create")),
			override: OverrideNone,
		},
		"no role: cannot tell": {
			override: OverrideNone,
			reason:   "UpstreamGateUnknown",
		},
		"a role without rules, as one being aggregated: cannot tell": {
			role:     withRules(),
			override: OverrideNone,
			reason:   "UpstreamGateUnknown",
		},
		"no role, but the administrator says that it is off": {override: OverrideOff},
		"the administrator is wrong: the indicator wins": {
			role:     withRules(rule("multicluster.x-k8s.io", "clusterprofiles", "create")),
			override: OverrideOff,
			reason:   "UpstreamGateOn",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := RegistrationVerdict("registration", test.role, true, test.override)
			if got.Allowed != (test.reason == "") || got.Reason != test.reason {
				t.Errorf("got %+v, want reason %q", got, test.reason)
			}
			if got.Problem+got.Fix != "" && got.Message != got.Problem+"; "+got.Fix {
				t.Errorf("the message %q does not consist of %q and %q", got.Message, got.Problem, got.Fix)
			}
			if !got.Allowed && got.Message == "" {
				t.Error("a refusal must say what to do")
			}
		})
	}
}

func TestDecideProxy(t *testing.T) {
	const deployment = "proxy/cluster-proxy-addon-manager"
	tests := map[string]struct {
		args    []string
		unknown string
		on      bool
		problem string
	}{
		"no Deployment":   {},
		"the gate is off": {args: []string{"/manager", "--feature-gates=ClusterProfileAccessProvider=false"}},
		"it cannot be read": {
			unknown: "may not be read",
			problem: "Deployment proxy/cluster-proxy-addon-manager may not be read",
		},
		"the gate is on": {
			args: []string{"--feature-gates=ClusterProfileAccessProvider=true"},
			on:   true,
			problem: "cluster-proxy writes it itself, because Deployment proxy/cluster-proxy-addon-manager has the feature " +
				"gate for it on; turn that off to let this addon write it",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			on, problem := decideProxy(deployment, test.args, test.unknown)
			if on != test.on || problem != test.problem {
				t.Errorf("got %t, %q", on, problem)
			}
		})
	}
}

func TestProxyGateOn(t *testing.T) {
	tests := map[string]struct {
		args []string
		want bool
	}{
		"no gates":     {args: []string{"/manager", "--leader-elect=true"}},
		"off":          {args: []string{"--feature-gates=ClusterProfileAccessProvider=false"}},
		"on":           {args: []string{"--feature-gates=ClusterProfileAccessProvider=true"}, want: true},
		"on, one dash": {args: []string{"-feature-gates=ClusterProfileAccessProvider=true"}, want: true},
		"on, in two arguments": {
			args: []string{"--feature-gates", "Other=false,ClusterProfileAccessProvider=True"},
			want: true,
		},
		"on, by its later name": {args: []string{"--feature-gates=ClusterProfile=true,Other=false"}, want: true},
		"the last setting counts": {
			args: []string{"--feature-gates=ClusterProfile=true", "--feature-gates=ClusterProfile=false"},
		},
		"on by either name": {
			args: []string{"--feature-gates=ClusterProfile=true,ClusterProfileAccessProvider=false"},
			want: true,
		},
		"on, as a program would read it": {args: []string{"--feature-gates= ClusterProfile = 1"}, want: true},
		"all that are new are on":        {args: []string{"--feature-gates=AllAlpha=true"}, want: true},
		"all new ones except it are on": {
			args: []string{"--feature-gates=AllAlpha=true,ClusterProfileAccessProvider=false"},
		},
		"neither on nor off": {args: []string{"--feature-gates=ClusterProfile"}},
		"another gate":       {args: []string{"--feature-gates=ClusterProfileX=true"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := proxyGateOn(test.args); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
