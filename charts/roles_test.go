package charts

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// TestTheManagerMayWriteNoRoleButItsAgents: what it may read it could otherwise
// have others read, by a Role that they are bound to.
func TestTheManagerMayWriteNoRoleButItsAgents(t *testing.T) {
	p := newPoliced(t, apitest.Start(t, apitest.Hub(), apitest.ClusterProfile()))
	cluster, team := p.namespace("cluster1", addonOf()), p.namespace("team", binding())
	rule := func(group, resource, name string) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get"}}
		if name != "" {
			r.ResourceNames = []string{name}
		}
		return r
	}
	role := func(in, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, Rules: rules}
	}
	secrets := rule("", "secrets", "")
	agents := role(cluster, "cluster-inventory-agent", rule("addon.open-cluster-management.io", "managedclusteraddons", "cluster-inventory"))
	theirs := role(team, "theirs", rule("", "pods", ""))
	p.create(theirs)
	// By these rights it would be allowed.
	p.may(team, own(tokenTarget))
	p.may(cluster, own(tokenSource))
	const policy = "may write only its agents' Roles"
	p.enforced(role(team, "another", secrets), policy)
	if err := p.manager.Create(t.Context(), agents); err != nil {
		t.Errorf("the agent's Role: %v", err)
	}
	for name, attempt := range map[string]func() error{
		"another's Role, to give Secrets":  func() error { return patchRules(p, theirs, secrets) },
		"another's Role, to give nothing":  func() error { return patchRules(p, theirs) },
		"an agent's Role, to give Secrets": func() error { return patchRules(p, agents, secrets) },
		"an agent's Role, to give Secrets of the addon's name": func() error {
			return patchRules(p, agents, rule("", "secrets", "cluster-inventory"))
		},
	} {
		if err := attempt(); !isRefused(err, policy) {
			t.Errorf("%s: the manager is told %v", name, err)
		}
	}
	theirs.Rules = append(theirs.Rules, secrets)
	if err := p.admin.Update(t.Context(), theirs); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	if err := p.manager.Delete(t.Context(), theirs); !apierrors.IsForbidden(err) {
		t.Errorf("deleting: %v", err)
	}
}

func patchRules(p *policed, role *rbacv1.Role, rules ...rbacv1.PolicyRule) error {
	changed := role.DeepCopy()
	changed.Rules = rules
	return p.manager.Patch(p.t.Context(), changed, client.MergeFrom(role))
}
