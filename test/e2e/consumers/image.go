package consumers

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// imageMode lets pods of any user run the programs in the image.
const imageMode = 0o755

// programs are the packages in this folder and their names in the image.
var programs = map[string]string{"reconciler": "my-consumer", "lister": "lister", "greeter": "greeter"}

// BuildImage fills fleet.ConsumerImage: with /my-consumer, which is the
// reconciler, /lister, /greeter, and upstream's plugin as /upstream/cp-creds. The
// fleet must have been started with access.
func BuildImage(ctx context.Context, f *fleet.Fleet, out io.Writer) error {
	dir := f.ConsumerDir()
	if err := os.MkdirAll(filepath.Join(dir, "upstream"), imageMode); err != nil {
		return err
	}
	var packages []string
	for pkg := range programs {
		packages = append(packages, "./consumers/"+pkg)
	}
	err := f.Build(ctx, filepath.Join(f.Root, "test", "e2e"), packages, func(built string) error {
		for pkg, name := range programs {
			if err := replace(filepath.Join(built, pkg), filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	plugin, err := fleet.UpstreamPlugin(ctx, out)
	if err != nil {
		return err
	}
	if err := replace(plugin, filepath.Join(dir, "upstream", "cp-creds")); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, imageMode) //nolint:gosec // whatever the umask
	})
}

// replace puts a copy of a program in the place of another, which may be running.
func replace(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", content, imageMode); err != nil { //nolint:gosec // pods run it
		return err
	}
	return os.Rename(to+".new", to)
}
