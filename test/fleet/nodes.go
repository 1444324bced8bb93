package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// nodeName is the name of every cluster's only node.
const nodeName = "node1"

// ImageRepository is the image that the fleet runs from this tree.
const ImageRepository = "quay.io/open-cluster-management/cluster-inventory-addon"

const ownPackage = "open-cluster-management.io/cluster-inventory-addon/test/fleet/cmd/fleet"

// module is this Go module's directory.
func (f *Fleet) module() string { return filepath.Join(f.Root, "test", "fleet") }

// ownProgram reports whether this process is the fleet command, which can run a node, or a
// program that only uses this package, such as a test.
func ownProgram() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && info.Path == ownPackage
}

// checkSandbox fails early, with one line, when pods cannot run here.
func (f *Fleet) checkSandbox(ctx context.Context, access bool) error {
	if access {
		if err := node.CheckOwnNetworks(); err != nil {
			return fmt.Errorf("a fleet with access: %w", err)
		}
	}
	if ownProgram() {
		return node.Check()
	}
	return f.Build(ctx, f.module(), []string{"./cmd/fleet"}, func(dir string) error {
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "fleet"), "node", "--check")
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			return errors.New(strings.TrimSpace(said.String()))
		}
		return nil
	})
}

// imageDir is what is at / in the image.
func (f *Fleet) imageDir() string { return f.path("image") }

// podDir is the scratch space of a cluster's pods: <dir>/<pod UID>.
func (f *Fleet) podDir(cluster string) string { return f.path(cluster, "pods") }

func (f *Fleet) nodeProcess(cluster string) supervisor.Process {
	return supervisor.Process{
		Name: cluster + "/node",
		Args: append([]string{
			f.path("bin", "fleet"), "node",
			"--kubeconfig=" + f.Kubeconfig(cluster),
			"--node-name=" + nodeName,
			"--image=" + ImageRepository + "=" + f.imageDir(),
			"--image=" + ConsumerImage + "=" + f.ConsumerDir(),
			"--dir=" + f.podDir(cluster),
			"--log-dir=" + filepath.Join(f.LogDir(), cluster, "pods"),
			"--pod-cidr=" + podCIDR(f.state.Network, slices.Index(f.Clusters(), cluster)),
		}, slices.Concat(f.accessNodeFlags(cluster), f.consumerNodeFlags(cluster))...),
		Tier: supervisor.TierAgents,
	}
}

func (f *Fleet) waitNode(ctx context.Context, cluster string) error {
	c, err := f.Client(cluster)
	if err != nil {
		return err
	}
	return await.Until(ctx, "the node of "+cluster, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		registered := &corev1.Node{}
		if err := c.Get(ctx, client.ObjectKey{Name: nodeName}, registered); err != nil {
			return false, err
		}
		for _, condition := range registered.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, fmt.Errorf("it is not ready")
	})
}
