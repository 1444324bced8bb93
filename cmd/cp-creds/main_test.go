package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// maxBytes is the most that an init container should have to copy.
const maxBytes = 30 << 20

var (
	hub   = apitest.New(apitest.ClusterProfile())
	spoke = apitest.New()

	// workDir is where the tests' consumers run. The program is in its bin, as in
	// upstream's documentation.
	workDir string
)

func program() string { return filepath.Join(workDir, "bin", "cp-creds") }

func TestMain(m *testing.M) {
	var err error
	if workDir, err = os.MkdirTemp("", "cp-creds-test-"); err == nil {
		err = build(program())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	apitest.Main(m, hub, spoke)
	if err := os.RemoveAll(workDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// build makes the program as "make build" does.
func build(path string) error {
	cmd := exec.Command("../../hack/build.sh", filepath.Dir(path), "./cmd/cp-creds")
	cmd.Env = append(os.Environ(), "VERSION=v1.2.3", "COMMIT=0123456789ab", "SOURCE_DATE_EPOCH=1000000000")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, output)
	}
	return nil
}

// An init container copies the program into consumers' images, which may contain
// no libraries.
func TestProgramIsStaticAndSmall(t *testing.T) {
	info, err := os.Stat(program())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxBytes {
		t.Errorf("the program has %d bytes, want at most %d", info.Size(), maxBytes)
	}
	file, err := elf.Open(program())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	interpreted := slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	libraries, err := file.ImportedLibraries()
	if interpreted || err != nil && !errors.Is(err, elf.ErrNoSymbols) || len(libraries) > 0 {
		t.Errorf("the program is not static: interpreter %t, libraries %v, %v", interpreted, libraries, err)
	}
}

// The build tells the program what it is built from; all programs have that from one
// package.
func TestProgramKnowsItsVersion(t *testing.T) {
	got := call(t, program(), nil, "--version")
	want := fmt.Sprintf("cp-creds version v1.2.3 (commit 0123456789ab of 2001-09-09T01:46:40Z, %s, %s/%s)\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if got != (result{stdout: want}) {
		t.Errorf("got %+v, want stdout %q", got, want)
	}
}

func TestProgramHoldsNoController(t *testing.T) {
	output, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(output))
	if !slices.Contains(packages, "k8s.io/client-go/rest") {
		t.Fatal("the list lacks a package that is used")
	}
	for _, pkg := range packages {
		for _, heavy := range []string{
			"sigs.k8s.io/controller-runtime", "open-cluster-management.io/addon-framework", "k8s.io/client-go/kubernetes",
			"k8s.io/client-go/informers", "open-cluster-management.io/cluster-inventory-addon/pkg/hub", "open-cluster-management.io/cluster-inventory-addon/pkg/kube",
		} {
			if pkg == heavy || strings.HasPrefix(pkg, heavy+"/") {
				t.Errorf("the program depends on %s", pkg)
			}
		}
	}
}

func TestInstallCopiesTheProgram(t *testing.T) {
	dir := t.TempDir()
	installed := filepath.Join(dir, "cp-creds")
	if err := os.WriteFile(installed, []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(t, program(), nil, "install", dir); got.code != 0 || got.stdout != "installed "+installed+"\n" ||
		got.stderr != "" {
		t.Fatalf("install: %+v", got)
	}
	want, err := os.ReadFile(program())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(installed)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy has %d bytes, the program %d; %v", len(got), len(want), err)
	}
	// A running copy can be replaced, and can replace itself.
	if got := call(t, installed, nil, "install", dir); got.code != 0 {
		t.Errorf("install over itself: %+v", got)
	}
	info, err := os.Stat(installed)
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("mode of the copy = %v, %v, want 0755", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v, want the program alone", entries, err)
	}
}

func TestInstallNeedsADirectory(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"that exists":   {[]string{"install", filepath.Join(t.TempDir(), "absent")}, 1, "no such file or directory"},
		"that is named": {[]string{"install"}, 2, "accepts 1 arg(s), received 0"},
	} {
		t.Run(name, func(t *testing.T) {
			call(t, program(), nil, test.args...).mustFail(t, test.code, test.want)
		})
	}
}

// result is how a call of the program ended.
type result struct {
	code           int
	stdout, stderr string
}

// call runs a program with only the given environment.
func call(t *testing.T, program string, env []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append([]string{"HOME=" + workDir}, env...)
	cmd.Stdout, cmd.Stderr, cmd.Stdin = &stdout, &stderr, io.LimitReader(nil, 0)
	if err := cmd.Run(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			t.Fatalf("run %s: %v", program, err)
		}
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// mustFail checks that the call failed with a code and one line that contains the
// given parts, and printed no answer.
func (r result) mustFail(t *testing.T, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code = %d, want %d", r.code, code)
	}
	if !strings.HasPrefix(r.stderr, "cp-creds: ") || strings.Count(r.stderr, "\n") != 1 ||
		!strings.HasSuffix(r.stderr, "\n") {
		t.Errorf("stderr = %q, want one line of the program", r.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("stderr = %q, want %q in it", r.stderr, part)
		}
	}
	if r.stdout != "" {
		t.Errorf("stdout has %d bytes, want none", len(r.stdout))
	}
}
