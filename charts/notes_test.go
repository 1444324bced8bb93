package charts

import (
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
)

// TestNotesAgreeWithTheDocs: the command that Helm prints after an installation is the one
// that the operations guide explains.
func TestNotesAgreeWithTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../docs/operations.md")
	apitest.Must(t, err)
	const uninstall = "    helm uninstall cluster-inventory -n open-cluster-management --timeout "
	if !strings.Contains(string(docs), "\n"+uninstall+"15m\n") {
		t.Errorf("docs/operations.md does not say %q", uninstall+"15m")
	}
	for values, want := range map[string]string{
		"":         uninstall + "15m\n",
		placements: uninstall + "15m\n",
		// Helm must wait longer than the hook does.
		"uninstall: {timeout: 40m}": uninstall + "TIMEOUT\n",
	} {
		if notes := notesOf(t, values); !strings.Contains(notes, want) {
			t.Errorf("%q: the notes do not say %q:\n%s", values, want, notes)
		}
	}
}

// notesOf returns what Helm prints after an installation.
func notesOf(t *testing.T, values string) string {
	t.Helper()
	release := chartutil.ReleaseOptions{Name: "cluster-inventory", Namespace: "open-cluster-management"}
	chart, all, err := hubtest.ForRelease(t, release, values)
	apitest.Must(t, err)
	files, err := engine.Render(chart, all)
	apitest.Must(t, err)
	return files["cluster-inventory/templates/NOTES.txt"]
}
