package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var (
	used    = regexp.MustCompile(`docs\.URL\("([^"]*)"\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// Every page that the plugin names exists, with its heading.
func TestPagesExist(t *testing.T) {
	count := 0
	apitest.Must(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range used.FindAllStringSubmatch(string(text), -1) {
			count++
			page, anchor, _ := strings.Cut(match[1], "#")
			content, err := os.ReadFile(filepath.Join("..", "..", "..", page))
			if err != nil {
				t.Errorf("%s names %s: %v", path, match[1], err)
			} else if anchor != "" && !hasHeading(string(content), anchor) {
				t.Errorf("%s names %s, which has no such heading", path, match[1])
			}
		}
		return err
	}))
	if count == 0 {
		t.Error("the plugin names no page")
	}
}

// hasHeading computes anchors of headings as GitHub does.
func hasHeading(page, anchor string) bool {
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		slug := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func TestPagesOfNoReleaseAreThoseOfMain(t *testing.T) {
	const want = "https://github.com/open-cluster-management-io/cluster-inventory-addon/blob/main/docs/operations.md"
	if got := URL("docs/operations.md"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
