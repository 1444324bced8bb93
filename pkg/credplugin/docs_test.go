package credplugin

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// A consumer sees the exit code and no more, and looks it up in
// docs/cp-creds.md.
func TestEveryExitCodeIsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/cp-creds.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "failure.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Exit") {
			return true
		}
		name, code := spec.Names[0].Name, spec.Values[0].(*ast.BasicLit).Value
		if other, taken := seen[code]; taken {
			t.Errorf("%s and %s are both %s", name, other, code)
		}
		seen[code] = name
		if !strings.Contains(string(docs), "| "+code+" |") {
			t.Errorf("docs/cp-creds.md does not explain exit code %s, %s", code, name)
		}
		return true
	})
	if len(seen) < 10 {
		t.Errorf("found only %d exit codes", len(seen))
	}
}
