package inventoryctl

import (
	"os"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// The documentation shows the commands' output in TestOutputByReader.
func TestDocumentationShowsRealOutput(t *testing.T) {
	docs, err := os.ReadFile("../../docs/kubectl-inventory.md")
	apitest.Must(t, err)
	for _, name := range []string{
		"list_-A_-L_region.example.com_as_admin", "matrix_as_admin", "matrix_--fold=always_as_admin",
		"explain_east_-n_team-b_as_admin", "explain_west_as_tenant", "explain_east_no.such.property_as_admin",
		"matrix_--tokens_as_admin", "diff_as_admin", "describe_east_as_admin", "rollout_as_admin",
	} {
		content, err := os.ReadFile("testdata/" + name + ".golden")
		apitest.Must(t, err)
		for line := range strings.Lines(string(content)) {
			line = strings.TrimRight(line, "\n")
			isOurs := line == "" || strings.HasPrefix(line, "exit code ") || strings.HasPrefix(line, "--- std")
			if !isOurs && !strings.Contains(string(docs), "\n    "+line+"\n") {
				t.Errorf("docs/kubectl-inventory.md does not show %s: %s", name, line)
			}
		}
	}
}

// The front page shows the beginning of one of these outputs.
func TestFrontPageShowsRealOutput(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	apitest.Must(t, err)
	output, err := os.ReadFile("testdata/explain_east_-n_team-b_as_admin.golden")
	apitest.Must(t, err)
	_, rest, found := strings.Cut(string(page), "$ kubectl inventory explain east -n team-b\n")
	shown, _, ends := strings.Cut(rest, "\n\n- **")
	if !found || !ends {
		t.Fatal("README.md does not show the command")
	}
	for line := range strings.Lines(shown) {
		if line = strings.TrimSpace(line); !strings.Contains(string(output), "\n"+line+"\n") {
			t.Errorf("this is not in the output: %q", line)
		}
	}
}
