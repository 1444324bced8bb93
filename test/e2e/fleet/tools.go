package fleet

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// tool is a program the fleet is built from. Each has a module of its own
// under test/e2e/tools, because their dependencies do not agree.
type tool struct {
	name string
	pkg  string // what to build in the module
	env  string // the variable that points at a ready one
	// image has the packages to build in place of pkg, each with the name of
	// its program in a directory: the tool then is what is at / in an image.
	image   map[string]string
	module  string // whose version the program is to tell
	stamp   func(version string) []string
	minutes string // what to expect of a first build
}

var (
	kubeTool = tool{
		name: "kube", pkg: ".", env: "FLEET_KUBE_BINARY", minutes: "about 7 minutes",
		module: "k8s.io/kubernetes", stamp: stampKubernetes,
	}
	ocmTool = tool{
		name: "ocm", pkg: ".", env: "FLEET_OCM_BINARY", minutes: "about 7 minutes",
		module: "open-cluster-management.io/ocm", stamp: func(string) []string { return nil },
	}
	helmTool = tool{
		name: "helm", pkg: "helm.sh/helm/v3/cmd/helm", env: "FLEET_HELM_BINARY", minutes: "about 2 minutes",
		module: "helm.sh/helm/v3", stamp: func(version string) []string {
			return []string{"-X=helm.sh/helm/v3/internal/version.version=" + version}
		},
	}
)

// The images of what gives access to clusters, built as upstream builds them.
var (
	clusterProxyTool = tool{
		name: "cluster-proxy", env: "FLEET_CLUSTER_PROXY_IMAGE", minutes: "about 4 minutes",
		image: map[string]string{
			clusterProxyModule + "/cmd/addon-manager":        "manager",
			clusterProxyModule + "/cmd/addon-agent":          "agent",
			clusterProxyModule + "/cmd/cluster-proxy":        "cluster-proxy",
			"sigs.k8s.io/apiserver-network-proxy/cmd/server": "proxy-server",
			"sigs.k8s.io/apiserver-network-proxy/cmd/agent":  "proxy-agent",
		},
		module: clusterProxyModule, stamp: func(string) []string { return nil },
	}
	serviceAccountTool = tool{
		name: "managed-serviceaccount", env: "FLEET_MANAGED_SERVICEACCOUNT_IMAGE", minutes: "about 3 minutes",
		image: map[string]string{
			serviceAccountModule + "/cmd":                                   "msa",
			serviceAccountModule + "/cmd/clusterprofile-credentials-plugin": "cp-creds",
		},
		module: serviceAccountModule, stamp: func(string) []string { return nil },
	}
)

const (
	clusterProxyModule   = "open-cluster-management.io/cluster-proxy"
	serviceAccountModule = "open-cluster-management.io/managed-serviceaccount"
)

// stampKubernetes makes the API server tell its version: a build without it
// says v0.0.0, which charts refuse and profiles would show.
func stampKubernetes(version string) []string {
	var flags []string
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X="+pkg+".gitVersion="+version,
			"-X="+pkg+".gitMajor="+numbers[0],
			"-X="+pkg+".gitMinor="+numbers[1],
			"-X="+pkg+".gitCommit=",
			"-X="+pkg+".gitTreeState=clean")
	}
	return flags
}

// buildArgs are the same on every machine, so that a cache entry means one thing.
func (t tool) buildArgs(ctx context.Context, dir string) ([]string, error) {
	version, err := goCommand(ctx, dir, "list", "-m", "-f", "{{.Version}}", t.module)
	if err != nil {
		return nil, err
	}
	link := append([]string{"-s", "-w"}, t.stamp(strings.TrimSpace(string(version)))...)
	return []string{"build", "-trimpath", "-ldflags=" + strings.Join(link, " ")}, nil
}

// toolPath returns the tool's binary: the one pointed at, the cached one, or
// one that is built now.
func (f *Fleet) toolPath(ctx context.Context, t tool, report *progress) (string, error) {
	if ready, err := t.ready(); ready != "" || err != nil {
		return ready, err
	}
	dir := f.toolDir(t)
	args, err := t.buildArgs(ctx, dir)
	if err != nil {
		return "", err
	}
	key, err := toolKey(ctx, dir, append(append(args, t.packages()...), t.programs()...))
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, t.name+"-"+key)
	if exists(binary) {
		now := time.Now()
		_ = os.Chtimes(binary, now, now) // only keeps it from being tidied away
		return binary, nil
	}
	unlock, err := lockFile(ctx, binary+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(binary) { // somebody else built it while we waited
		return binary, nil
	}
	return binary, t.build(ctx, dir, args, binary, report)
}

func (f *Fleet) toolDir(t tool) string {
	return filepath.Join(f.Root, "test", "e2e", "tools", t.name)
}

// build compiles into the cache, under the final name only when it is whole.
func (t tool) build(ctx context.Context, dir string, args []string, binary string, report *progress) error {
	report.line("building %s from its modules (%s the first time, then cached in %s)", t.name, t.minutes, filepath.Dir(binary))
	started := time.Now()
	tmp := binary + ".tmp"
	built := tmp
	if t.image != nil {
		// Packages name their programs otherwise than the image does.
		built = binary + ".built"
		if err := errors.Join(os.RemoveAll(built), os.RemoveAll(tmp), os.Mkdir(built, dirMode), os.Mkdir(tmp, imageMode)); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "go", append(append(args, "-v", "-o", built), t.packages()...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	var packages atomic.Int64
	done := make(chan struct{})
	go tick(done, 15*time.Second, func() {
		report.line("building %s: %s, %d packages compiled", t.name, time.Since(started).Round(time.Second), packages.Load())
	})
	problems := countPackages(output, &packages)
	err = cmd.Wait()
	close(done)
	if err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", t.name, dir, err, problems)
	}
	for pkg, program := range t.image {
		if err := os.Rename(filepath.Join(built, path.Base(pkg)), filepath.Join(tmp, program)); err != nil {
			return fmt.Errorf("build %s: %w", t.name, err)
		}
	}
	if built != tmp {
		if err := os.Remove(built); err != nil {
			return err
		}
	}
	report.line("built %s in %s", t.name, time.Since(started).Round(time.Second))
	t.tidy(filepath.Dir(binary), time.Now().Add(-unused))
	return os.Rename(tmp, binary)
}

// packages are what is built.
func (t tool) packages() []string {
	if t.image == nil {
		return []string{t.pkg}
	}
	return slices.Sorted(maps.Keys(t.image))
}

// programs are the names that an image gives to what is built.
func (t tool) programs() []string {
	var names []string
	for _, pkg := range t.packages() {
		if name := t.image[pkg]; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// unused is how long a build stays cached that no fleet asks for.
const unused = 30 * 24 * time.Hour

// tidy removes the builds of a tool that nobody has asked for since.
func (t tool) tidy(cache string, since time.Time) {
	builds, _ := filepath.Glob(filepath.Join(cache, t.name+"-*")) // the pattern is valid
	for _, build := range builds {
		if info, err := os.Stat(build); err == nil && info.ModTime().Before(since) {
			_ = os.RemoveAll(build) // it only takes up room
		}
	}
}

// countPackages reads what "go build -v" says: a package per line, downloads,
// and whatever went wrong, which it returns.
func countPackages(output io.Reader, packages *atomic.Int64) string {
	var problems strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "go: downloading "):
		case !strings.ContainsAny(line, " :"):
			packages.Add(1)
		default:
			problems.WriteString(line + "\n")
		}
	}
	return problems.String()
}

func tick(done <-chan struct{}, every time.Duration, do func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			do()
		}
	}
}

// toolKey names a build by all that decides its content.
func toolKey(ctx context.Context, dir string, args []string) (string, error) {
	hash := sha256.New()
	sources, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return "", err
	}
	for _, source := range sources { // Glob sorts
		content, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(source), len(content), content) // a hash never fails
	}
	version, err := goCommand(ctx, dir, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(hash, "%s%s", version, args)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// moduleDir is where a module of the tool is unpacked; it is fetched if needed.
func (f *Fleet) moduleDir(ctx context.Context, t tool, module string) (string, error) {
	output, err := goCommand(ctx, f.toolDir(t), "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal(output, &answer); err != nil {
		return "", err
	}
	if answer.Error != "" || answer.Dir == "" {
		return "", fmt.Errorf("module %s of %s: %s", module, t.name, answer.Error)
	}
	return answer.Dir, nil
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return output, nil
}

// cacheDir outlives every fleet and is shared by all checkouts of a user.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place to cache built tools: %w", err)
	}
	dir := filepath.Join(base, "cluster-inventory-addon")
	return dir, os.MkdirAll(dir, dirMode)
}

// lockFile waits for the lock of a path and returns what gives it back. The
// holder may remove the file: whoever then gets the lock of the removed one
// tries again with the new.
func lockFile(ctx context.Context, path string) (func(), error) {
	for {
		if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, fileMode)
		if err != nil {
			return nil, err
		}
		err = wait(ctx, "the lock "+path, 50*time.Millisecond, func(context.Context) (bool, error) {
			return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil, nil
		})
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		held, err := file.Stat()
		if err != nil {
			return nil, err
		}
		if present, err := os.Stat(path); err == nil && os.SameFile(held, present) {
			return func() { _ = file.Close() }, nil
		}
		_ = file.Close()
	}
}
