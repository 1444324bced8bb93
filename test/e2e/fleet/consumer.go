package fleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// ConsumerImage is the image of the programs under test/e2e/consumers, by the
// name that docs/consumers.md uses for a program of the reader's own. It holds
// /my-consumer, which is the reconciler, /lister, and upstream's plugin as
// /upstream/cp-creds.
const ConsumerImage = "example.com/my-consumer"

// consumerPrograms are the packages and what they are called in the image.
var consumerPrograms = map[string]string{
	"./consumers/reconciler": "my-consumer",
	"./consumers/lister":     "lister",
}

// consumerDir is what is at / in the image.
func (f *Fleet) consumerDir() string { return f.path("consumer") }

// BuildConsumers puts what the image of the consumers holds where the nodes find
// it. The fleet must have been started with access.
func (f *Fleet) BuildConsumers(ctx context.Context, out io.Writer) error {
	if err := os.MkdirAll(filepath.Join(f.consumerDir(), "upstream"), imageMode); err != nil {
		return err
	}
	for pkg, name := range consumerPrograms {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(f.consumerDir(), name), pkg)
		cmd.Dir = filepath.Join(f.Root, "test", "e2e")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, output)
		}
	}
	plugin, err := UpstreamPlugin(ctx, out)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(plugin)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(f.consumerDir(), "upstream", "cp-creds"), content, imageMode); err != nil {
		return err
	}
	return filepath.WalkDir(f.consumerDir(), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, imageMode) //nolint:gosec // whatever the umask: pods run as other users
	})
}
