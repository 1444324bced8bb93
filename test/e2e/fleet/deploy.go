package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// programs are what the image holds, as the Dockerfile has it.
var programs = []string{"manager", "agent", "cp-creds"}

// imageMode lets the users that pods run as execute what the image holds.
const imageMode os.FileMode = 0o755

// Where the addon is installed.
const (
	// Release is the name of the Helm release.
	Release = "cluster-inventory"
	// ReleaseNamespace is the namespace of the release and of the manager.
	ReleaseNamespace = managementNamespace
)

// Deploy builds manager and agent from the tree and installs or upgrades the
// chart of the tree on the hub, then waits till the manager is ready. The tag
// of the image is derived from the binaries, so that manager and agents roll
// exactly when they changed. helmArgs come after the fleet's own and win.
func (f *Fleet) Deploy(ctx context.Context, out io.Writer, helmArgs ...string) error {
	report := newProgress(out)
	unlock, err := lockFile(ctx, f.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	helm, err := f.toolPath(ctx, helmTool, report)
	if err != nil {
		return err
	}
	report.line("building manager and agent from %s", f.Root)
	tag, err := f.buildImage(ctx)
	if err != nil {
		return err
	}
	report.line("installing the chart with image tag %s", tag)
	args := append([]string{
		"upgrade", "--install", Release, filepath.Join(f.Root, "charts", "cluster-inventory"),
		"--namespace", ReleaseNamespace, "--create-namespace",
		"--set-string", "image.tag=" + tag,
		"--wait", "--timeout", "2m",
	}, helmArgs...)
	// Wrong values are the caller's: they need one line, and no look at the pods.
	if said, err := f.helmSays(ctx, helm, append(slices.Clone(args), "--dry-run=client")...); err != nil {
		return fmt.Errorf("helm upgrade: %w: %s", err, said)
	}
	if err := f.helm(ctx, out, helm, args...); err != nil {
		f.Diagnose(ctx, out)
		return fmt.Errorf("helm upgrade: %w", err)
	}
	report.line("the manager is ready")
	return nil
}

// Undeploy uninstalls the chart and waits till its clean-up is done.
func (f *Fleet) Undeploy(ctx context.Context, out io.Writer, helmArgs ...string) error {
	report := newProgress(out)
	helm, err := f.toolPath(ctx, helmTool, report)
	if err != nil {
		return err
	}
	report.line("uninstalling %s", Release)
	args := append([]string{
		"uninstall", Release, "--namespace", ReleaseNamespace, "--ignore-not-found", "--wait", "--timeout", "11m",
	}, helmArgs...)
	if err := f.helm(ctx, out, helm, args...); err != nil {
		f.Diagnose(ctx, out)
		return fmt.Errorf("helm uninstall: %w", err)
	}
	report.line("uninstalled")
	return nil
}

func (f *Fleet) helm(ctx context.Context, out io.Writer, helm string, args ...string) error {
	cmd := f.helmCommand(ctx, helm, args...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// helmSays runs Helm and returns its complaints.
func (f *Fleet) helmSays(ctx context.Context, helm string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := f.helmCommand(ctx, helm, args...)
	cmd.Stderr = &said
	err := cmd.Run()
	return strings.TrimSpace(said.String()), err
}

func (f *Fleet) helmCommand(ctx context.Context, helm string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, helm, append(args, "--kubeconfig", f.Kubeconfig(HubName))...)
	cmd.Dir = f.Root
	home := f.path("tmp", "helm")
	cmd.Env = append(baseEnv(os.Environ()), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return cmd
}

// buildImage puts the binaries where the nodes find the image's content, and
// returns a tag that changes with them.
func (f *Fleet) buildImage(ctx context.Context) (tag string, err error) {
	fresh := f.path("image.new")
	if err := os.MkdirAll(fresh, dirMode); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", fresh + "/"}
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = f.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", strings.Join(programs, ", "), err, output)
	}
	hash := sha256.New()
	for _, name := range programs {
		content, err := os.ReadFile(filepath.Join(fresh, name))
		if err != nil {
			return "", err
		}
		_, _ = hash.Write(content) // a hash never fails
		if err := f.intoImage(filepath.Join(fresh, name)); err != nil {
			return "", err
		}
	}
	return "dev-" + hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// intoImage moves a program to / of the image. A process that runs the one it
// replaces keeps its file.
func (f *Fleet) intoImage(program string) error {
	if err := os.MkdirAll(f.imageDir(), imageMode); err != nil {
		return err
	}
	for _, path := range []string{f.imageDir(), program} { // whatever the umask
		if err := os.Chmod(path, imageMode); err != nil {
			return err
		}
	}
	return os.Rename(program, filepath.Join(f.imageDir(), filepath.Base(program)))
}
