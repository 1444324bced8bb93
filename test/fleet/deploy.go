package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/ocm"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// binaries are what the image holds, as hack/tools/release has it.
var binaries = []string{"manager", "agent", "cp-creds"}

// Where the addon is installed.
const (
	// Release is the name of the Helm release.
	Release = "cluster-inventory"
	// ReleaseNamespace is the namespace of the release and of the manager.
	ReleaseNamespace = ocm.ManagementNamespace
)

// helmTimeout makes Helm wait for so long.
var helmTimeout = "--timeout=" + rolloutTimeout.String()

// Deploy builds manager and agent from the tree and installs or upgrades the
// chart of the tree on the hub, then waits until the manager is ready. The tag
// of the image is derived from the binaries, so manager and agents roll exactly
// when these changed. They are built once in the life of f. helmArgs come last and win.
func (f *Fleet) Deploy(ctx context.Context, out io.Writer, helmArgs ...string) error {
	report := progress.New(out)
	unlock, err := files.Lock(ctx, f.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.ensureImage(ctx, report); err != nil {
		return err
	}
	if err := f.applyCRDs(ctx, out); err != nil {
		return err
	}
	if f.state.Hosted {
		helmArgs = append([]string{"--set", "agent.hosted.enabled=true"}, helmArgs...)
	}
	return f.install(ctx, report, out, filepath.Join(f.Root, "charts", "cluster-inventory"), f.imageTag, helmArgs)
}

// BuildImage builds what Deploy installs, for users who install the chart by other means.
// Pods get it under any tag that DeployAt has not made.
func (f *Fleet) BuildImage(ctx context.Context, out io.Writer) error {
	unlock, err := files.Lock(ctx, f.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return f.ensureImage(ctx, progress.New(out))
}

// ensureImage builds the image, once in the life of f.
func (f *Fleet) ensureImage(ctx context.Context, report *progress.Report) (err error) {
	if f.imageTag != "" {
		return nil
	}
	report.Line("building manager and agent from %s", f.Root)
	f.imageTag, err = f.buildImage(ctx)
	return err
}

// DeployAt is Deploy of the chart, the manager and the agent as they stood at a commit,
// which is named in full. The tag of their image is TagAt(commit).
func (f *Fleet) DeployAt(ctx context.Context, out io.Writer, commit string, helmArgs ...string) error {
	report := progress.New(out)
	unlock, err := files.Lock(ctx, f.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	addon, err := programs.AddonAt(ctx, f.Root, commit, binaries, report)
	if err != nil {
		return err
	}
	image := node.TaggedImage(f.imageDir(), TagAt(commit))
	if err := os.RemoveAll(image); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(addon, programs.AddonImage), image); err != nil {
		return err
	}
	return f.install(ctx, report, out, filepath.Join(addon, programs.AddonChart), TagAt(commit), helmArgs)
}

// TagAt is the tag of the image that DeployAt deploys.
func TagAt(commit string) string { return "at-" + commit }

// Rollback has Helm go back from the present release to the one before, and waits until its
// manager is ready.
func (f *Fleet) Rollback(ctx context.Context, out io.Writer) error {
	report := progress.New(out)
	helm, err := programs.Helm.Path(ctx, f.Root, report)
	if err != nil {
		return err
	}
	report.Line("rolling %s back", Release)
	err = f.helm(ctx, out, helm, "rollback", Release, "--namespace", ReleaseNamespace, "--wait", helmTimeout)
	if err != nil {
		f.Diagnose(ctx, out)
		return fmt.Errorf("helm rollback: %w", err)
	}
	report.Line("the manager is ready")
	return nil
}

// install installs or upgrades a chart.
func (f *Fleet) install(
	ctx context.Context, report *progress.Report, out io.Writer, chart, tag string, helmArgs []string,
) error {
	helm, err := programs.Helm.Path(ctx, f.Root, report)
	if err != nil {
		return err
	}
	report.Line("installing the chart with image tag %s", tag)
	args := append([]string{
		"upgrade", "--install", Release, chart,
		"--namespace", ReleaseNamespace, "--create-namespace",
		"--set-string", "image.tag=" + tag,
		"--wait", helmTimeout,
	}, helmArgs...)
	// Invalid values cause one line from Helm, not a diagnosis of the pods.
	if complaint, err := f.helmComplaint(ctx, helm, append(slices.Clone(args), "--dry-run=client")...); err != nil {
		return fmt.Errorf("helm upgrade: %w: %s", err, complaint)
	}
	if err := f.helm(ctx, out, helm, args...); err != nil {
		f.Diagnose(ctx, out)
		return fmt.Errorf("helm upgrade: %w", err)
	}
	report.Line("the manager is ready")
	return nil
}

// applyCRDs applies the addon's own definition, as one does before an upgrade: Helm creates
// definitions only when it installs, not when it validates values.
func (f *Fleet) applyCRDs(ctx context.Context, out io.Writer) error {
	const ours = "app.kubernetes.io/name=" + Release
	crds := filepath.Join(f.Root, "charts", "cluster-inventory", "crds")
	for _, args := range [][]string{
		{"apply", "--server-side", "--force-conflicts", "-l", ours, "-f", crds},
		{"wait", "customresourcedefinitions", "-l", ours, "--for=condition=Established", "--timeout=1m"},
	} {
		cmd := exec.CommandContext(ctx, f.Kubectl(), append(args, "--kubeconfig", f.Kubeconfig(HubName))...)
		cmd.Env = append(supervisor.BaseEnv(os.Environ()), "KUBECACHEDIR="+f.path("tmp", "kubectl"))
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("kubectl %s: %w", args[0], err)
		}
	}
	return nil
}

// Test runs the chart's own test, with "helm test".
func (f *Fleet) Test(ctx context.Context, out io.Writer) error {
	report := progress.New(out)
	helm, err := programs.Helm.Path(ctx, f.Root, report)
	if err != nil {
		return err
	}
	report.Line("testing %s", Release)
	if err := f.helm(ctx, out, helm, "test", Release, "--namespace", ReleaseNamespace, helmTimeout); err != nil {
		f.Diagnose(ctx, out)
		return fmt.Errorf("helm test: %w", err)
	}
	return nil
}

// Undeploy uninstalls the chart and waits until its clean-up is done.
func (f *Fleet) Undeploy(ctx context.Context, out io.Writer, helmArgs ...string) error {
	report := progress.New(out)
	helm, err := programs.Helm.Path(ctx, f.Root, report)
	if err != nil {
		return err
	}
	report.Line("uninstalling %s", Release)
	args := append([]string{
		"uninstall", Release, "--namespace", ReleaseNamespace, "--ignore-not-found", "--wait", "--timeout", "11m",
	}, helmArgs...)
	if err := f.helm(ctx, out, helm, args...); err != nil {
		f.Diagnose(ctx, out)
		return fmt.Errorf("helm uninstall: %w", err)
	}
	report.Line("uninstalled")
	return nil
}

func (f *Fleet) helm(ctx context.Context, out io.Writer, helm string, args ...string) error {
	cmd := f.helmCommand(ctx, helm, args...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// helmComplaint runs Helm and returns what it writes to stderr.
func (f *Fleet) helmComplaint(ctx context.Context, helm string, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := f.helmCommand(ctx, helm, args...)
	cmd.Stderr = &stderr
	err := cmd.Run()
	return strings.TrimSpace(stderr.String()), err
}

func (f *Fleet) helmCommand(ctx context.Context, helm string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, helm, append(args, "--kubeconfig", f.Kubeconfig(HubName))...)
	cmd.Dir = f.Root
	home := f.path("tmp", "helm")
	cmd.Env = append(
		supervisor.BaseEnv(os.Environ()), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
	)
	return cmd
}

// buildImage builds the binaries into the image, and returns a tag that changes with them.
func (f *Fleet) buildImage(ctx context.Context) (tag string, err error) {
	packages := make([]string, 0, len(binaries))
	for _, program := range binaries {
		packages = append(packages, "./cmd/"+program)
	}
	hash := sha256.New()
	err = f.Build(ctx, f.Root, packages, func(dir string) error {
		for _, name := range binaries {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			_, _ = hash.Write(content) // a hash never fails
			if err := intoImage(f.imageDir(), name, content); err != nil {
				return err
			}
		}
		return nil
	})
	return "dev-" + hex.EncodeToString(hash.Sum(nil))[:12], err
}

// intoImage writes a program to / of an image. Processes that run the replaced file keep it.
func intoImage(dir, name string, content []byte) error {
	if err := os.MkdirAll(dir, files.Image); err != nil {
		return err
	}
	program := filepath.Join(dir, name)
	if err := files.Write(program, content, files.Image); err != nil {
		return err
	}
	for _, path := range []string{dir, program} { // whatever the umask
		if err := os.Chmod(path, files.Image); err != nil {
			return err
		}
	}
	return nil
}
