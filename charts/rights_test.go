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

// TestEveryRightIsDocumented: reviewers of the chart read its README, so each rule of its
// roles is in one row of the table there, with who has it, its verbs and its resources.
func TestEveryRightIsDocumented(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(chartDir, "README.md"))
	apitest.Must(t, err)
	_, table, _ := strings.Cut(string(readme), "\n## Rights\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows, holder := map[string][]string{}, "" // by the first word of who has the rights
	for line := range strings.Lines(strings.ToLower(table)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if who := strings.FieldsFunc(cells[1], func(r rune) bool { return r == ' ' || r == ',' }); len(who) > 0 {
			holder = who[0]
		}
		rows[holder] = append(rows[holder], cells[2])
	}
	rules := 0
	for _, object := range hubtest.MustRender(t, "") {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		apitest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
		who := holderOf(role.Name)
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				rules++
				if !slices.ContainsFunc(rows[who], func(row string) bool { return grants(row, rule.Verbs, resource) }) {
					t.Errorf("no row of the README on %s has %v on %s of %s",
						who, rule.Verbs, resource, manifesttest.Identify(object))
				}
			}
		}
	}
	if rules < 30 {
		t.Errorf("found only %d rules", rules)
	}
}

// holderOf is the first word of the README on who has a role.
func holderOf(role string) string {
	for part, who := range map[string]string{"uninstall": "uninstall", "agent-on-hub": "agent"} {
		if strings.Contains(role, part) {
			return who
		}
	}
	return "manager"
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
