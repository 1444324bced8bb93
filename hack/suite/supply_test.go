package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const tree = "../.."

// modules returns the folders with a go.mod, as "/" and "/test/e2e".
func modules(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, pattern := range []string{"go.mod", "*/*/go.mod", "*/*/*/go.mod", "*/*/*/*/go.mod"} {
		files, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folders = append(folders, path.Join("/", strings.TrimPrefix(filepath.Dir(file), tree)))
		}
	}
	if len(folders) < 15 {
		t.Fatalf("only these modules were found: %v", folders)
	}
	return folders
}

// TestOneToolchain: what installs Go by a go.mod gets the same version for every module. Without
// this line it would install the oldest that the module accepts.
func TestOneToolchain(t *testing.T) {
	toolchain := regexp.MustCompile(`(?m)^toolchain (go1\.\d+\.\d+)$`)
	found := map[string][]string{}
	for _, folder := range modules(t) {
		content, err := os.ReadFile(filepath.Join(tree, folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		version := append(toolchain.FindStringSubmatch(string(content)), "none", "none")[1]
		found[version] = append(found[version], folder)
	}
	if len(found) != 1 || len(found["none"]) > 0 {
		t.Errorf("modules by their toolchain: %v", found)
	}
}

// TestEveryModuleIsUpdated: updates are proposed for each module of the repository.
func TestEveryModuleIsUpdated(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(tree, ".github/dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string `json:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			patterns = append(patterns, update.Directories...)
		}
	}
	for _, folder := range modules(t) {
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			matches, _ := path.Match(pattern, folder)
			return matches
		}) {
			t.Errorf("%s is not updated", folder)
		}
	}
}

// TestActionsArePinned: a tag of an action can be moved, a commit cannot. No workflow uses two
// commits of one action.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(tree, ".github/workflows/*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("workflows %v: %v", files, err)
	}
	pinned := regexp.MustCompile(`^(\S+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$`)
	commits := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			_, action, uses := strings.Cut(strings.TrimSpace(line), "uses: ")
			if !uses {
				continue
			}
			match := pinned.FindStringSubmatch(action)
			if match == nil {
				t.Errorf("%s uses %s, which is not pinned to a commit", file, action)
				continue
			}
			if before := commits[match[1]]; before != "" && before != match[2] {
				t.Errorf("%s uses another commit of %s", file, match[1])
			}
			commits[match[1]] = match[2]
		}
	}
}
