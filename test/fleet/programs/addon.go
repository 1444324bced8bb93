package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
)

// In a directory of AddonAt: the root of the image, and the chart.
const (
	AddonImage = "image"
	AddonChart = "chart"
)

// AddonAt returns a directory with the addon as of a commit of the repository at root: a
// cached one, or a new one. The commit, in full, is fetched if a shallow clone lacks it.
// binaries are the programs to build, in cmd.
func AddonAt(
	ctx context.Context, root, commit string, binaries []string, report *progress.Report,
) (dir string, err error) {
	version, err := GoCommand(ctx, root, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", commit, version, binaries))
	dir = filepath.Join(cache, "addon-"+hex.EncodeToString(key[:8]))
	unlock, err := files.Lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if files.Exists(dir) {
		now := time.Now()
		return dir, os.Chtimes(dir, now, now) // marks it as used; see tidy
	}
	source, fresh := dir+".source", dir+".tmp"
	defer func() { err = errors.Join(err, os.RemoveAll(source), os.RemoveAll(fresh)) }()
	if err := errors.Join(os.RemoveAll(source), os.RemoveAll(fresh)); err != nil {
		return "", err
	}
	report.Line("building manager and agent as of commit %s, to be cached in %s", commit, cache)
	if err := exportCommit(ctx, root, commit, source); err != nil {
		return "", err
	}
	if err := buildAddon(ctx, source, filepath.Join(fresh, AddonImage), binaries); err != nil {
		return "", err
	}
	chart := filepath.Join(source, "charts", "cluster-inventory")
	if err := os.Rename(chart, filepath.Join(fresh, AddonChart)); err != nil {
		return "", err
	}
	Program{Name: "addon"}.tidy(cache, time.Now().Add(-unused))
	return dir, os.Rename(fresh, dir)
}

// exportCommit writes the files of a commit to a new directory.
func exportCommit(ctx context.Context, root, commit, to string) error {
	if err := os.Mkdir(to, files.PrivateDir); err != nil {
		return err
	}
	if err := git(ctx, root, "cat-file", "-e", commit+"^{commit}"); err != nil {
		if err := git(ctx, root, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", commit); err != nil {
			return fmt.Errorf("commit %s is not in this clone, and cannot be fetched: %w", commit, err)
		}
	}
	archive := filepath.Join(to, "source.tar")
	if err := git(ctx, root, "archive", "--format=tar", "--output="+archive, commit); err != nil {
		return err
	}
	return run(exec.CommandContext(ctx, "tar", "-x", "-C", to, "-f", archive))
}

// git runs git in a clone that may belong to another user, as in a container.
func git(ctx context.Context, root string, args ...string) error {
	args = append([]string{"-C", root, "-c", "safe.directory=" + root}, args...)
	return run(exec.CommandContext(ctx, "git", args...))
}

func buildAddon(ctx context.Context, source, image string, binaries []string) error {
	if err := os.MkdirAll(image, files.Image); err != nil {
		return err
	}
	// Without -trimpath, packages compiled for tests are reused.
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", image + "/"}
	for _, program := range binaries {
		args = append(args, "./cmd/"+program)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if err := run(cmd); err != nil {
		return err
	}
	paths := []string{filepath.Dir(image), image}
	for _, program := range binaries {
		paths = append(paths, filepath.Join(image, program))
	}
	for _, path := range paths { // whatever the umask
		if err := os.Chmod(path, files.Image); err != nil {
			return err
		}
	}
	return nil
}

func run(cmd *exec.Cmd) error {
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, output)
	}
	return nil
}
