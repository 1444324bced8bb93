package fleet

import (
	"context"
	"io"
	"os"
	"os/exec"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
)

// Assets returns a directory for KUBEBUILDER_ASSETS.
func Assets(ctx context.Context, out io.Writer) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	return programs.Assets(ctx, root, progress.New(out))
}

// KubeAt is the path of Kubernetes' programs at the newest known version of a minor version, such
// as 1.36, for FLEET_KUBE_BINARY.
func KubeAt(ctx context.Context, progressTo io.Writer, minor string) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	kube, err := programs.KubeAt(root, minor)
	if err != nil {
		return "", err
	}
	return kube.Path(ctx, root, progress.New(progressTo))
}

// Helm runs the pinned Helm with the caller's terminal.
func Helm(ctx context.Context, progressTo io.Writer, args ...string) error {
	helm, err := HelmPath(ctx, progressTo)
	if err != nil {
		return err
	}
	return runHere(exec.CommandContext(ctx, helm, args...))
}

// HelmPath is the path of the pinned Helm.
func HelmPath(ctx context.Context, progressTo io.Writer) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	return programs.Helm.Path(ctx, root, progress.New(progressTo))
}

// Helm4Path is the path of the pinned Helm 4, which fleets use where FLEET_HELM_BINARY names it.
func Helm4Path(ctx context.Context, progressTo io.Writer) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	return programs.Helm4.Path(ctx, root, progress.New(progressTo))
}

// Kubectl is the path of the pinned kubectl.
func (f *Fleet) Kubectl() string { return f.path("bin", "kubectl") }

// RunKubectl runs the pinned kubectl with the caller's terminal.
func (f *Fleet) RunKubectl(ctx context.Context, progressTo io.Writer, cluster string, args ...string) error {
	kube, err := programs.Kube.Path(ctx, f.Root, progress.New(progressTo))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, kube, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.Kubeconfig(cluster))
	return runHere(cmd)
}

func runHere(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

func (f *Fleet) linkKubectl(kube string) error {
	if err := os.Symlink(kube, f.Kubectl()); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}
