package fleet

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Whoever wonders whether a version is supported reads which ones the journeys
// ran with.
func TestDocumentedVersionsAreThoseOfTheFleet(t *testing.T) {
	docs := read(t, "../../../docs/compatibility.md")
	for module, file := range map[string]string{
		"k8s.io/kubernetes":              "../tools/kube/go.mod",
		"open-cluster-management.io/ocm": "../tools/ocm/go.mod",
		clusterProxyModule:               "../tools/cluster-proxy/go.mod",
		serviceAccountModule:             "../tools/managed-serviceaccount/go.mod",
	} {
		required := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v[0-9.]+)$`).FindStringSubmatch(read(t, file))
		if required == nil {
			t.Errorf("%s does not require %s", file, module)
		} else if !strings.Contains(docs, "| "+required[1]+" |") {
			t.Errorf("docs/compatibility.md does not say that %s of %s is tested", required[1], module)
		}
	}
}

// "go test -run" is content with a name that no test has.
func TestDocumentedJourneysExist(t *testing.T) {
	files, err := filepath.Glob("../journeys/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var journeys strings.Builder
	for _, file := range files {
		journeys.WriteString(read(t, file))
	}
	named := regexp.MustCompile(`\bRUN=(\w+)`).FindAllStringSubmatch(read(t, "../../../CONTRIBUTING.md"), -1)
	if len(named) == 0 {
		t.Error("CONTRIBUTING.md names no journey")
	}
	for _, name := range named {
		if !strings.Contains(journeys.String(), "func "+name[1]+"(") {
			t.Errorf("CONTRIBUTING.md names %s, and there is no such journey", name[1])
		}
	}
}
