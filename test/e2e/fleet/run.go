package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Assets returns a directory with etcd and kube-apiserver by these names, as
// tests against a real API server want it in KUBEBUILDER_ASSETS.
func Assets(ctx context.Context, out io.Writer) (string, error) {
	f, err := locate("assets")
	if err != nil {
		return "", err
	}
	kube, err := f.toolPath(ctx, kubeTool, newProgress(out))
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(kube))
	dir := filepath.Join(cache, "assets-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return "", err
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(kube, filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	return dir, nil
}

// Helm runs the pinned Helm with the caller's terminal.
func Helm(ctx context.Context, progressTo io.Writer, args ...string) error {
	f, err := locate("helm")
	if err != nil {
		return err
	}
	helm, err := f.toolPath(ctx, helmTool, newProgress(progressTo))
	if err != nil {
		return err
	}
	return runHere(exec.CommandContext(ctx, helm, args...))
}

// Kubectl is the path of a kubectl for whoever has none.
func (f *Fleet) Kubectl() string { return f.path("bin", "kubectl") }

// RunKubectl runs the pinned kubectl with the caller's terminal.
func (f *Fleet) RunKubectl(ctx context.Context, progressTo io.Writer, cluster string, args ...string) error {
	kube, err := f.toolPath(ctx, kubeTool, newProgress(progressTo))
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
