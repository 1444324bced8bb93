package guide

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// "go test -run" does not fail when no test has the name.
func TestDocumentedJourneysExist(t *testing.T) {
	files, err := filepath.Glob("../journeys/*/*_test.go")
	apitest.Must(t, err)
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

// Readers of the docs get the image that the chart installs.
func TestDocsNameTheChartsVersion(t *testing.T) {
	found := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindStringSubmatch(read(t, "../../../charts/cluster-inventory/Chart.yaml"))
	if found == nil {
		t.Fatal("the chart has no appVersion")
	}
	image := regexp.MustCompile(`open-cluster-management/cluster-inventory-addon:(v[0-9][\w.-]*)`)
	for _, file := range []string{"consumers.md", "kueue.md", "knative.md", "quickstart.md", "quickstart/login.yaml"} {
		tags := image.FindAllStringSubmatch(read(t, "../../../docs/"+file), -1)
		if len(tags) == 0 {
			t.Errorf("docs/%s names no image", file)
		}
		for _, tag := range tags {
			if tag[1] != found[1] {
				t.Errorf("docs/%s names %s, and the chart is of %s", file, tag[0], found[1])
			}
		}
	}
}

// No image is published yet, so what a page names cannot be pulled. Releasing removes this test
// with the front page's section.
func TestPagesThatNameTheImageSayHowToBuildIt(t *testing.T) {
	image := regexp.MustCompile(`(?:image|reference): quay\.io/open-cluster-management/cluster-inventory-addon:v[0-9]`)
	builds := regexp.MustCompile(`README\.md#an-image|make build image|make release`)
	count := 0
	for _, p := range pages(t, "docs/*.md", "charts/*/README.md") {
		if !image.MatchString(p.source) {
			continue
		}
		count++
		if !builds.MatchString(p.source) {
			t.Errorf("%s names the image, and does not say how to build it", p.path)
		}
	}
	if count == 0 {
		t.Error("no page names the image")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	apitest.Must(t, err)
	return string(content)
}

// A command that selects objects of the whole hub must not take from others what they set: an
// annotation of accounts says who gets their tokens.
func TestDocumentedCommandsOverwriteNothingInBulk(t *testing.T) {
	bulk := regexp.MustCompile(`kubectl (?:annotate|label) .*(?: -A | -l | --all| --selector)`)
	checked := 0
	for _, p := range pages(t, documentation...) {
		for line := range strings.Lines(strings.ReplaceAll(p.source, "\\\n", "")) {
			if !bulk.MatchString(line) {
				continue
			}
			checked++
			if strings.Contains(line, "--overwrite") {
				t.Errorf("%s overwrites in bulk: %s", p.path, strings.TrimSpace(line))
			}
			if strings.Contains(line, "sync-to-namespaces") && !strings.Contains(line, "--field-selector metadata.name=") {
				t.Errorf("%s hands out the tokens of accounts that it does not name: %s", p.path, strings.TrimSpace(line))
			}
		}
	}
	if checked == 0 {
		t.Error("no command is checked")
	}
}
