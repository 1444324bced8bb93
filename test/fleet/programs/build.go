package programs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
)

// Path returns the program that the repository at root pins: the one that its
// environment variable points at, a cached one, or one that it builds now.
func (p Program) Path(ctx context.Context, root string, report *progress.Report) (string, error) {
	if ready, err := p.ready(); ready != "" || err != nil {
		return ready, err
	}
	dir := p.dir(root)
	args, err := p.buildArgs(ctx, dir)
	if err != nil {
		return "", err
	}
	key, err := buildKey(ctx, dir, p.sources(), append(append(args, p.packages()...), p.names()...))
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, p.Name+"-"+key)
	if files.Exists(binary) {
		now := time.Now()
		_ = os.Chtimes(binary, now, now) // marks it as used; see tidy
		return binary, nil
	}
	unlock, err := files.Lock(ctx, binary+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if files.Exists(binary) { // another process built it while we waited
		return binary, nil
	}
	return binary, p.build(ctx, dir, args, binary, report)
}

// buildArgs are the same on every machine, because they are part of the build's key.
func (p Program) buildArgs(ctx context.Context, dir string) ([]string, error) {
	link := []string{"-s", "-w"}
	if p.stamp != nil {
		args := append([]string{"list"}, p.modfileArgs()...)
		output, err := GoCommand(ctx, dir, append(args, "-m", "-f", "{{.Version}}", p.Module, Kube.Module)...)
		if err != nil {
			return nil, err
		}
		versions := strings.Fields(string(output)) // both are the same for Kubernetes itself
		link = append(link, p.stamp(versions[0], versions[len(versions)-1])...)
	}
	args := []string{"build", "-trimpath", "-ldflags=" + strings.Join(link, " ")}
	if p.likeTests {
		args = slices.Delete(args, 1, 2)
	}
	if p.tags != "" {
		args = append(args, "-tags="+p.tags)
	}
	return append(args, p.modfileArgs()...), nil
}

// modfileArgs has the Go command use the program's own build list.
func (p Program) modfileArgs() []string {
	if p.modfile == "" {
		return nil
	}
	return []string{"-modfile=" + p.modfile}
}

// build compiles into the cache; the final name appears when the build is complete.
func (p Program) build(ctx context.Context, dir string, args []string, binary string, report *progress.Report) error {
	report.Line(
		"building %s from its modules, to be cached in %s (%s)", p.Name, filepath.Dir(binary), p.duration(),
	)
	started := time.Now()
	tmp := binary + ".tmp"
	built := tmp
	if p.image != nil {
		// go build names programs after their packages, the image otherwise.
		built = binary + ".built"
		if err := errors.Join(
			os.RemoveAll(built), os.RemoveAll(tmp), os.Mkdir(built, files.PrivateDir), os.Mkdir(tmp, files.Image),
		); err != nil {
			return err
		}
	}
	if err := p.compile(ctx, dir, append(args, "-v", "-o", built), started, report); err != nil {
		return err
	}
	for pkg, program := range p.image {
		if err := os.Rename(filepath.Join(built, path.Base(pkg)), filepath.Join(tmp, program)); err != nil {
			return fmt.Errorf("build %s: %w", p.Name, err)
		}
	}
	if built != tmp {
		if err := os.Remove(built); err != nil {
			return err
		}
	}
	if err := p.copyFiles(ctx, dir, tmp); err != nil {
		return err
	}
	report.Line("built %s in %s", p.Name, time.Since(started).Round(time.Second))
	p.tidy(filepath.Dir(binary), time.Now().Add(-unused))
	return os.Rename(tmp, binary)
}

// copyFiles copies what an image has besides programs out of the module, which is pinned
// by the build list in dir.
func (p Program) copyFiles(ctx context.Context, dir, image string) error {
	if len(p.files) == 0 {
		return nil
	}
	module, err := downloaded(ctx, dir, p.Module)
	if err != nil {
		return err
	}
	for from, to := range p.files {
		if err := os.CopyFS(filepath.Join(image, to), os.DirFS(filepath.Join(module, from))); err != nil {
			return fmt.Errorf("files of %s: %w", p.Name, err)
		}
	}
	return filepath.WalkDir(image, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, files.Image) //nolint:gosec // whatever the umask; no other user writes here
	})
}

// compile runs the Go command and reports its progress.
func (p Program) compile(
	ctx context.Context, dir string, args []string, started time.Time, report *progress.Report,
) error {
	cmd := exec.CommandContext(ctx, "go", append(args, p.packages()...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w", p.Name, err)
	}
	var packages atomic.Int64
	done := make(chan struct{})
	go tick(done, 15*time.Second, func() {
		report.Line("building %s: %s, %d packages compiled", p.Name, time.Since(started).Round(time.Second), packages.Load())
	})
	problems := countPackages(output, &packages)
	err = cmd.Wait()
	close(done)
	if err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", p.Name, dir, err, problems)
	}
	return nil
}

// countPackages reads what "go build -v" writes: a package per line, downloads,
// and errors, which it returns.
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

// ModuleDir is where the sources of the program's module are. They are
// downloaded if needed.
func (p Program) ModuleDir(ctx context.Context, root string) (string, error) {
	return downloaded(ctx, p.dir(root), p.Module)
}

// downloaded is where the sources of a module are, at the version that the build list in
// dir has.
func downloaded(ctx context.Context, dir, module string) (string, error) {
	output, err := GoCommand(ctx, dir, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var download struct{ Dir, Error string }
	if err := json.Unmarshal(output, &download); err != nil {
		return "", err
	}
	if download.Error != "" || download.Dir == "" {
		return "", fmt.Errorf("module %s: %s", module, download.Error)
	}
	return download.Dir, nil
}

// GoCommand returns the output of a Go command that runs in dir.
func GoCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
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
