package consumers

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// imageMode lets pods of any user run the programs in the image.
const imageMode = 0o755

// programs are the packages in this folder and their names in the image.
var programs = map[string]string{
	"./consumers/reconciler": "my-consumer",
	"./consumers/lister":     "lister",
	"./consumers/greeter":    "greeter",
}

// BuildImage fills fleet.ConsumerImage: with /my-consumer, which is the
// reconciler, /lister, /greeter, and upstream's plugin as /upstream/cp-creds. The
// fleet must have been started with access.
func BuildImage(ctx context.Context, f *fleet.Fleet, out io.Writer) error {
	dir := f.ConsumerDir()
	if err := os.MkdirAll(filepath.Join(dir, "upstream"), imageMode); err != nil {
		return err
	}
	for pkg, name := range programs {
		cmd := exec.CommandContext(
			ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(dir, name), pkg,
		)
		cmd.Dir = filepath.Join(f.Root, "test", "e2e")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, output)
		}
	}
	plugin, err := fleet.UpstreamPlugin(ctx, out)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(plugin)
	if err != nil {
		return err
	}
	if err := os.WriteFile( //nolint:gosec // pods run it
		filepath.Join(dir, "upstream", "cp-creds"), content, imageMode,
	); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, imageMode) //nolint:gosec // whatever the umask
	})
}
