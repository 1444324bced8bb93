package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Readers look up every condition and reason in docs/conditions.md.
func TestEveryConditionAndReasonIsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		constants++
		want := "| `" + value + "` |"
		if strings.HasPrefix(spec.Names[0].Name, "Condition") {
			want = "## " + value + "\n"
		}
		if !strings.Contains(string(docs), want) {
			t.Errorf("docs/conditions.md has no %q", want)
		}
		return true
	})
	if constants < 10 {
		t.Errorf("found only %d constants in conditions.go", constants)
	}
}
