package charts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

const (
	agentRole   = "open-cluster-management:cluster-inventory:agent-on-hub"
	tokenSource = "open-cluster-management:cluster-inventory:token-source"
	tokenTarget = "open-cluster-management:cluster-inventory:token-target"
)

// ofCredentials are the ClusterRoles whose rules TestRightsOnSecrets lists.
var ofCredentials = []string{tokenSource, tokenTarget, "open-cluster-management:cluster-inventory:credentials"}

// TestRightsOnSecrets lists all rights that concern tokens. The chart itself binds
// those on Secrets nowhere.
func TestRightsOnSecrets(t *testing.T) {
	rule := func(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups:     []string{group},
			Resources:     []string{resource},
			ResourceNames: names,
			Verbs:         verbs,
		}
	}
	roles := "rbac.authorization.k8s.io"
	want := map[string][]rbacv1.PolicyRule{
		tokenSource: {rule("", "secrets", nil, "get")},
		tokenTarget: {rule("", "secrets", nil, "get", "list", "watch", "create", "patch", "delete")},
		"open-cluster-management:cluster-inventory:credentials": {
			rule("authentication.open-cluster-management.io", "managedserviceaccounts", nil, "list", "watch"),
			rule(
				roles,
				"clusterroles",
				[]string{"open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"},
				"list",
				"watch",
			),
			rule(roles, "clusterroles", []string{tokenSource, tokenTarget}, "bind"),
			rule(roles, "rolebindings", []string{tokenSource, tokenTarget}, "get", "list", "watch", "patch", "delete"),
		},
	}
	objects := hubtest.MustRender(t, "")
	for _, name := range ofCredentials {
		got := manifesttest.Find[rbacv1.ClusterRole](t, objects, "ClusterRole", name)
		if diff := cmp.Diff(want[name], got.Rules); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, object := range objects {
		ref, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
		if ref == tokenSource || ref == tokenTarget {
			t.Errorf("%s binds %s", manifesttest.Identify(object), ref)
		}
	}
}

// TestDisabledHasNoRights: with credentials off, none of their rights remain but to see
// whether there are copies, and the policies allow none.
func TestDisabledHasNoRights(t *testing.T) {
	for _, object := range hubtest.MustRender(t, "credentials: {mode: disabled}") {
		name := object.GetName()
		if strings.Contains(name, "token") || strings.HasSuffix(name, ":credentials") {
			t.Errorf("%s is rendered", manifesttest.Identify(object))
		}
		rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
		delete(object.Object, "rules")
		rules = slices.DeleteFunc(rules, func(rule any) bool {
			fields := rule.(map[string]any)
			return cmp.Equal(fields["resources"], []any{"rolebindings"}) && cmp.Equal(fields["verbs"], []any{"list"})
		})
		text := fmt.Sprint(object.Object, rules)
		if strings.Contains(text, tokenSource) || strings.Contains(text, tokenTarget) {
			t.Errorf("%s names a ClusterRole for tokens", manifesttest.Identify(object))
		}
	}
}

// TestEveryModeIsFenced: the manager writes everything but tokens in every mode.
func TestEveryModeIsFenced(t *testing.T) {
	policies := func(values string) []string {
		var names []string
		for _, object := range hubtest.MustRender(t, values) {
			if strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy") && !strings.Contains(object.GetName(), "-token-") {
				names = append(names, manifesttest.Identify(object))
			}
		}
		return names
	}
	always := policies("")
	if len(always) != 2*10 {
		t.Errorf("policies and bindings %v, want those of 10 kinds", always)
	}
	for _, mode := range []string{"draining", "disabled"} {
		if diff := cmp.Diff(always, policies("credentials: {mode: "+mode+"}")); diff != "" {
			t.Errorf("%s (-enabled +%[1]s):\n%s", mode, diff)
		}
	}
}
