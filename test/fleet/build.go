package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

// Build builds programs of the tree, given as packages of a module in dir, and calls use
// with the directory that has them, by the last elements of the packages' paths; use copies
// what it needs. All fleets of the repository build there, one after the other: only the
// first compiles and links, and the others find its programs up to date.
func (f *Fleet) Build(ctx context.Context, dir string, packages []string, use func(dir string) error) error {
	fleets := filepath.Dir(f.Dir)
	unlock, err := files.Lock(ctx, filepath.Join(fleets, "build.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	// No fleet has a name with a dot.
	built := filepath.Join(fleets, "build.out")
	if err := os.MkdirAll(built, files.PrivateDir); err != nil {
		return err
	}
	// Without -trimpath, packages compiled for tests are reused.
	args := append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", built + "/"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(packages, ", "), err, output)
	}
	return use(built)
}
