package guide

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const (
	root = "../../.."
	// columns is the width of a line of prose. Rows of tables and code may be wider.
	columns = 120
	// cellWords is how many words a cell of a table may have.
	cellWords = 39
)

// documentation are the pages that users and contributors read.
var documentation = []string{
	"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "charts/*/README.md",
}

// page is one of them.
type page struct {
	path     string
	source   string
	headings map[string]bool // by anchor
	links    []string
	code     map[int]bool // the lines of code, from 0
}

// parse reads a page. The anchors are those of GitHub, as long as headings contain ASCII
// without underscores.
func parse(t *testing.T, path string) *page {
	t.Helper()
	p := &page{path: path, source: read(t, path), headings: map[string]bool{}, code: map[int]bool{}}
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	document := markdown.Parser().Parse(text.NewReader([]byte(p.source)))
	apitest.Must(t, ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			id, _ := node.AttributeString("id")
			p.headings[fmt.Sprintf("%s", id)] = true
		case *ast.Link:
			p.links = append(p.links, string(node.Destination))
		case *ast.Image:
			p.links = append(p.links, string(node.Destination))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			for i := range node.Lines().Len() {
				p.code[strings.Count(p.source[:node.Lines().At(i).Start], "\n")] = true
			}
		}
		return ast.WalkContinue, nil
	}))
	return p
}

// broken returns the relative links that lead nowhere.
func (p *page) broken(t *testing.T) []string {
	t.Helper()
	var broken []string
	for _, link := range p.links {
		to, err := url.Parse(link)
		apitest.Must(t, err)
		if to.Scheme != "" {
			continue
		}
		target := p.path
		if to.Path != "" {
			target = filepath.Join(filepath.Dir(p.path), to.Path)
		}
		if _, err := os.Stat(target); err != nil ||
			to.Fragment != "" && !parse(t, target).headings[to.Fragment] {
			broken = append(broken, link)
		}
	}
	return broken
}

// wide returns the numbers of the lines of prose that are too wide.
func (p *page) wide() []int {
	var wide []int
	for i, line := range strings.Split(p.source, "\n") {
		isRow := strings.HasPrefix(strings.TrimSpace(line), "|")
		if utf8.RuneCountInString(line) > columns && !isRow && !p.code[i] {
			wide = append(wide, i+1)
		}
	}
	return wide
}

var (
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	cellBorder = regexp.MustCompile(`[^\\]\|`)
)

// long returns the numbers of the rows of tables with a cell of too many words. The table of
// rights in docs/security.md is generated.
func (p *page) long() []int {
	var long []int
	generated := false
	for i, line := range strings.Split(p.source, "\n") {
		switch {
		case strings.HasPrefix(line, "<!-- Begin of the table of rights"):
			generated = true
		case strings.HasPrefix(line, "<!-- End of the table of rights"):
			generated = false
		case !generated && !p.code[i] && strings.HasPrefix(strings.TrimSpace(line), "|"):
			for _, cell := range cellBorder.Split(linkTarget.ReplaceAllString(line, "]"), -1) {
				if len(strings.Fields(cell)) > cellWords {
					long = append(long, i+1)
				}
			}
		}
	}
	return long
}

func pages(t *testing.T, patterns ...string) []*page {
	t.Helper()
	var all []*page
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		apitest.Must(t, err)
		if len(paths) == 0 {
			t.Errorf("there is no %s", pattern)
		}
		for _, path := range paths {
			all = append(all, parse(t, path))
		}
	}
	return all
}

func TestDocumentedLinksLeadSomewhere(t *testing.T) {
	for _, p := range append(pages(t, documentation...), pages(t, "test/*/*.md")...) {
		for _, link := range p.broken(t) {
			t.Errorf("%s: %s leads nowhere", p.path, link)
		}
	}
}

func TestDocumentationIsNotTooWide(t *testing.T) {
	for _, p := range pages(t, documentation...) {
		if wide := p.wide(); len(wide) > 0 {
			t.Errorf("%s: lines with more than %d columns: %v", p.path, columns, wide)
		}
	}
}

// Readers lose their way in a cell of a whole paragraph.
func TestCellsOfTablesAreShort(t *testing.T) {
	for _, p := range pages(t, documentation...) {
		if long := p.long(); len(long) > 0 {
			t.Errorf("%s: lines with a cell of more than %d words: %v", p.path, cellWords, long)
		}
	}
}

// What is not Markdown names pages, too: comments, scripts, templates, and the plugin's output.
var named = regexp.MustCompile(`\bdocs/[a-z-]+\.md(?:#[a-z0-9-]+)?`)

func TestNamedPagesExist(t *testing.T) {
	parsed, count := map[string]*page{}, 0
	apitest.Must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name := entry.Name(); name == "bin" || len(name) > 2 && name[0] == '.' && name != ".github" {
				return fs.SkipDir
			}
			return nil
		case !slices.Contains([]string{".go", ".sh", ".yaml", ".yml", ".tpl", ".txt", ".golden", ""}, filepath.Ext(path)):
			return nil
		}
		for _, address := range named.FindAllString(read(t, path), -1) {
			count++
			file, anchor, _ := strings.Cut(address, "#")
			file = filepath.Join(root, file)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s names %s, which does not exist", path, address)
				continue
			}
			if parsed[file] == nil {
				parsed[file] = parse(t, file)
			}
			if anchor != "" && !parsed[file].headings[anchor] {
				t.Errorf("%s names %s, which has no such section", path, address)
			}
		}
		return nil
	}))
	if count == 0 {
		t.Error("no page is named")
	}
}

// Readers find only the pages to which the index leads.
func TestIndexLeadsToEveryPage(t *testing.T) {
	listed := map[string]bool{}
	for _, link := range parse(t, filepath.Join(root, "docs/README.md")).links {
		file, _, _ := strings.Cut(link, "#")
		listed[file] = true
	}
	for _, p := range pages(t, "docs/*.md") {
		if name := filepath.Base(p.path); name != "README.md" && !listed[name] {
			t.Errorf("docs/README.md does not lead to %s", name)
		}
	}
}

func TestPagesAreChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		apitest.Must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	write("other.md", "# Other\n\n## What `it` says: all of it\n\nText.\n\n## Twice\n\n## Twice\n")
	long := strings.Repeat("long ", 30)
	p := parse(t, write("page.md", "# Page\n\n[a](other.md#what-it-says-all-of-it) [b](other.md#twice-1) [c](#page)\n"+
		"[d](https://example.com/#x) [e](../"+filepath.Base(dir)+")\n\n"+
		"[f](other.md#twice-2), [g](nothing.md), [h](#other) and ![i](picture.svg)\n\n"+
		"| row |\n|---|\n| [j](nowhere.md) "+long+" |\n\n    code "+long+"\n\n```sh\n"+long+"[k](code.md)\n```\n\n"+
		"1. Item:\n\n   ```sh\n   "+long+"\n   ```\n\n"+
		"| a | b |\n|---|---|\n| "+words(20)+" | "+words(39)+" |\n| c | [d](#page) "+words(39)+" |\n\n"+long+"\n"))
	want := []string{"other.md#twice-2", "nothing.md", "#other", "picture.svg", "nowhere.md"}
	if diff := cmp.Diff(want, p.broken(t)); diff != "" {
		t.Errorf("broken links (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{strings.Count(p.source, "\n")}, p.wide()); diff != "" {
		t.Errorf("wide lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{strings.Count(p.source, "\n") - 2}, p.long()); diff != "" {
		t.Errorf("rows with long cells (-want +got):\n%s", diff)
	}
}

func words(count int) string { return strings.Repeat("word ", count) }
