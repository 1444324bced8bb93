// Command durations lists, in a table of docs/architecture.md, the named durations of the manager: its
// timeouts, waits and intervals, each with its comment.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	begin = "<!-- Durations, by hack/durations -->"
	end   = "<!-- End of the durations -->"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "durations:", err)
		os.Exit(1)
	}
}

// run replaces the table in a page by the durations of some folders.
func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: durations PAGE FOLDER")
	}
	var all []duration
	for _, folder := range args[1:] {
		found, err := in(os.DirFS(filepath.Dir(folder)), filepath.Base(folder))
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	page, err := os.ReadFile(args[0]) //nolint:gosec // the caller's own
	if err != nil {
		return err
	}
	text, err := replace(string(page), table(all))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[0], []byte(text), 0o644) //nolint:gosec // a page of the repository
}

// replace returns a page with another table between its marks.
func replace(page, table string) (string, error) {
	before, rest, hasBegin := strings.Cut(page, begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return "", fmt.Errorf("no lines %q and %q", begin, end)
	}
	return before + begin + "\n\n" + table + "\n" + end + after, nil
}

// duration is a constant.
type duration struct {
	folder, name, value, comment string
}

// in returns the durations of a folder's packages, but not of tests.
func in(root fs.FS, folder string) ([]duration, error) {
	var found []duration
	err := fs.WalkDir(root, folder, func(name string, entry fs.DirEntry, err error) error {
		isSource := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if err != nil || entry.IsDir() || !isSource {
			return err
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, declared := range file.Decls {
			if group, ok := declared.(*ast.GenDecl); ok && group.Tok == token.CONST {
				found = append(found, ofGroup(files, path.Dir(name), group)...)
			}
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b duration) int { return cmp.Compare(a.folder, b.folder) })
	return found, err
}

// ofGroup returns the durations of one declaration. Constants without a comment that directly follow
// another one share its comment.
func ofGroup(files *token.FileSet, folder string, group *ast.GenDecl) []duration {
	var found []duration
	comment, last := group.Doc.Text(), 0
	for _, spec := range group.Specs {
		value := spec.(*ast.ValueSpec)
		first := files.Position(value.Pos()).Line
		switch {
		case value.Doc != nil:
			comment = value.Doc.Text()
		case value.Comment != nil:
			comment = value.Comment.Text()
		case last > 0 && first > last+1:
			comment = group.Doc.Text()
		}
		last = files.Position(value.End()).Line
		for i, name := range value.Names {
			if i < len(value.Values) {
				var text strings.Builder
				_ = printer.Fprint(&text, files, value.Values[i]) // a Builder does not fail
				found = append(found, duration{folder, name.Name, text.String(), comment})
			}
		}
	}
	return slices.DeleteFunc(found, func(d duration) bool { return !isDuration(d.value) })
}

// isDuration reports whether an expression names a unit of time, or is the one duration that other
// folders use as their own.
func isDuration(expression string) bool {
	return unit.MatchString(expression) || expression == "kube.AbsenceCounts"
}

var (
	unit  = regexp.MustCompile(`\btime\.(Millisecond|Second|Minute|Hour)\b`)
	plain = regexp.MustCompile(`^(?:(\d+(?: \* \d+)*) \* )?time\.(Millisecond|Second|Minute|Hour)$`)
)

var symbols = map[string]string{"Millisecond": "ms", "Second": "s", "Minute": "min", "Hour": "h"}

// shown returns how the table shows an expression.
func shown(expression string) string {
	match := plain.FindStringSubmatch(expression)
	if match == nil {
		return "`" + expression + "`"
	}
	return strings.ReplaceAll(cmp.Or(match[1], "1"), "*", "×") + " " + symbols[match[2]]
}

// table returns the Markdown table.
func table(all []duration) string {
	var text strings.Builder
	text.WriteString("| constant | value | what for |\n|---|---:|---|\n")
	for _, d := range all {
		fmt.Fprintf(&text, "| `%s.%s` | %s | %s |\n", strings.TrimPrefix(d.folder, "pkg/"), d.name, shown(d.value),
			firstSentence(d.comment))
	}
	return text.String()
}

// firstSentence returns a comment's first sentence on one line, as a table's cell.
func firstSentence(comment string) string {
	line := strings.Join(strings.Fields(comment), " ")
	if before, _, more := strings.Cut(line, ". "); more {
		line = before + "."
	}
	return strings.ReplaceAll(line, "|", `\|`)
}
