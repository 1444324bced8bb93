package charts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// TestEveryRightIsDocumented: whoever reviews the chart reads its README, so each rule of its
// roles is in one row of the table there, with its verbs and its resources.
func TestEveryRightIsDocumented(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(chartDir, "README.md"))
	apitest.Must(t, err)
	_, table, _ := strings.Cut(string(readme), "\n## Rights\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := strings.Split(strings.ToLower(table), "\n")
	rules := 0
	for _, object := range hubtest.MustRender(t, "") {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		apitest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				rules++
				if !slices.ContainsFunc(rows, func(row string) bool { return grants(row, rule.Verbs, resource) }) {
					t.Errorf("no row of the README has %v on %s of %s", rule.Verbs, resource, manifesttest.Identify(object))
				}
			}
		}
	}
	if rules < 30 {
		t.Errorf("found only %d rules", rules)
	}
}

// grants reports whether a row, in lower case, names the verbs and the resource, in the
// singular or plural, with its subresource.
func grants(row string, verbs []string, resource string) bool {
	for _, verb := range verbs {
		if !strings.Contains(row, "`"+verb+"`") {
			return false
		}
	}
	for part := range strings.SplitSeq(resource, "/") {
		if !strings.Contains(row, strings.TrimSuffix(part, "s")) {
			return false
		}
	}
	return true
}
