package upstream

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestDecide(t *testing.T) {
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
		"the role says nothing of profiles: the gate is off":            {role: withRules(unrelated), override: OverrideNone},
		"the role may create profiles: the gate is on":                  {role: withRules(unrelated, rule("multicluster.x-k8s.io", "clusterprofiles", "get", "create")), override: OverrideNone, reason: "UpstreamGateOn"},
		"everything is allowed, profiles among it: the gate may be on":  {role: withRules(rule("*", "*", "*")), override: OverrideNone, reason: "UpstreamGateOn"},
		"reading profiles alone is harmless":                            {role: withRules(rule("multicluster.x-k8s.io", "clusterprofiles", "get", "list", "watch")), override: OverrideNone},
		"other resources of the group are harmless":                     {role: withRules(rule("multicluster.x-k8s.io", "placementdecisions", "create")), override: OverrideNone},
		"no role: cannot tell":                                          {override: OverrideNone, reason: "UpstreamGateUnknown"},
		"a role without rules, as one being aggregated: cannot tell":    {role: withRules(), override: OverrideNone, reason: "UpstreamGateUnknown"},
		"no role, but the administrator vouches":                        {override: OverrideOff},
		"the administrator vouches against the evidence: evidence wins": {role: withRules(rule("multicluster.x-k8s.io", "clusterprofiles", "create")), override: OverrideOff, reason: "UpstreamGateOn"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide("registration", test.role, test.override)
			if got.Allowed != (test.reason == "") || got.Reason != test.reason {
				t.Errorf("got %+v, want reason %q", got, test.reason)
			}
			if !got.Allowed && got.Message == "" {
				t.Error("a refusal must say what to do")
			}
		})
	}
}
