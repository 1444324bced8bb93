package programs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBuildKeyChangesWithSourcesAndArguments(t *testing.T) {
	dir := t.TempDir()
	key := func(args ...string) string {
		t.Helper()
		k, err := buildKey(t.Context(), dir, []string{".", "./sub"}, args)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module a\n")
	first := key("build", ".")
	if again := key("build", "."); again != first {
		t.Error("the same sources give another key")
	}
	seen := map[string]string{first: "first"}
	expectNew := func(what, k string) {
		t.Helper()
		if before := seen[k]; before != "" {
			t.Errorf("%s: the key is that of %q", what, before)
		}
		seen[k] = what
	}
	write("go.sum", "sum\n")
	expectNew("a file more", key("build", "."))
	write("go.mod", "module b\n")
	expectNew("another content", key("build", "."))
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("sub/main.go", "package main\n")
	expectNew("a source in a folder", key("build", "."))
	expectNew("other arguments", key("build", "./other"))
}

func TestCountPackagesKeepsOnlyProblems(t *testing.T) {
	var packages atomic.Int64
	output := "go: downloading k8s.io/api v0.36.6\nk8s.io/api/core/v1\ngolang.org/x/net/http2\n# k8s.io/api\nmain.go:3:1: syntax error\n"
	problems := countPackages(strings.NewReader(output), &packages)
	if packages.Load() != 2 {
		t.Errorf("counted %d packages", packages.Load())
	}
	if problems != "# k8s.io/api\nmain.go:3:1: syntax error\n" {
		t.Errorf("problems: %q", problems)
	}
}

func TestStampKubernetes(t *testing.T) {
	got := strings.Join(stampKubernetes("v1.35.4", "")[:5], " ")
	want := "-X=k8s.io/component-base/version.gitVersion=v1.35.4 -X=k8s.io/component-base/version.gitMajor=1" +
		" -X=k8s.io/component-base/version.gitMinor=35 -X=k8s.io/component-base/version.gitCommit= -X=k8s.io/component-base/version.gitTreeState=clean"
	if got != want {
		t.Errorf("got %s", got)
	}
}

// Without the version of Kubernetes, "helm template" would refuse the addon's chart.
func TestStampHelm(t *testing.T) {
	got := strings.Join(stampHelm("v3.20.2", "v1.35.4"), " ")
	want := "-X=helm.sh/helm/v3/internal/version.version=v3.20.2" +
		" -X=helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X=helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=35" +
		" -X=helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 -X=helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=35"
	if got != want {
		t.Errorf("got %s", got)
	}
}

// What is built is part of a build's name: another choice is another build.
func TestImagesNameAllThatIsInThem(t *testing.T) {
	if diff := cmp.Diff([]string{"operator", "kodata"}, KnativeOperator.names()); diff != "" {
		t.Error(diff)
	}
	args, err := Kueue.buildArgs(t.Context(), "")
	if diff := cmp.Diff([]string{"build", "-ldflags=-s -w", "-tags=exclude_scheduler_library"}, args); diff != "" || err != nil {
		t.Errorf("arguments (%v, -want +got):\n%s", err, diff)
	}
}

func TestTidyRemovesOnlyUnusedBuildsOfTheProgram(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"kube-old": 2 * unused, "kube-new": 0, "ocm-old": 2 * unused} {
		path := filepath.Join(cache, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	Kube.tidy(cache, now.Add(-unused))
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(cache, "kube-new"), filepath.Join(cache, "ocm-old")}, left); diff != "" {
		t.Error(diff)
	}
}

func TestReadyImageIsADirectory(t *testing.T) {
	t.Setenv(ClusterProxy.env, "programs_test.go")
	if path, err := ClusterProxy.ready(); err == nil {
		t.Errorf("a file is taken for an image: %s", path)
	}
	dir := t.TempDir()
	t.Setenv(ClusterProxy.env, dir)
	if path, err := ClusterProxy.ready(); err != nil || path != dir {
		t.Errorf("got %s, %v", path, err)
	}
}

// docs/compatibility.md names the versions that the journeys run with.
func TestDocumentedVersionsAreThoseOfTheFleet(t *testing.T) {
	docs := read(t, "../../../docs/compatibility.md")
	for _, p := range []Program{Kube, OCM, ClusterProxy, ManagedServiceAccount, Kueue, KnativeOperator} {
		module, file := p.Module, filepath.Join(p.dir("../../.."), "go.mod")
		required := regexp.MustCompile(
			`(?m)^\t` + regexp.QuoteMeta(module) + ` (v[0-9.]+)(?: // indirect)?$`,
		).FindStringSubmatch(
			read(t, file),
		)
		if required == nil {
			t.Errorf("%s does not require %s", file, module)
		} else if !strings.Contains(docs, "| "+required[1]+" |") {
			t.Errorf("docs/compatibility.md does not say that %s of %s is tested", required[1], module)
		}
	}
	helm4 := regexp.MustCompile(`helm.sh/helm/v4 (v[0-9.]+) `).FindStringSubmatch(
		read(t, filepath.Join(Helm4.dir("../../.."), "go.mod")),
	)
	if helm4 == nil || !strings.Contains(docs, "| Helm 4 | "+helm4[1]+" ") {
		t.Errorf("docs/compatibility.md names another Helm 4 than %v", helm4)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
