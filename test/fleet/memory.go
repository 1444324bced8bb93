package fleet

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// AnonymousRSS returns the resident memory, in bytes, of the process of a pod's
// first container, without the pages of its binary, which the kernel can drop
// and read again.
func (f *Fleet) AnonymousRSS(ctx context.Context, cluster, namespace, pod string) (int64, error) {
	pid, err := f.ContainerPID(ctx, cluster, namespace, pod)
	if err != nil {
		return 0, err
	}
	return ProcessRSS(pid)
}

// ProcessRSS is AnonymousRSS of any process.
func ProcessRSS(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return anonymousRSS(string(status))
}

func anonymousRSS(status string) (int64, error) {
	for lines := bufio.NewScanner(strings.NewReader(status)); lines.Scan(); {
		value, found := strings.CutPrefix(lines.Text(), "RssAnon:")
		if !found {
			continue
		}
		var kib int64
		var unit string
		if _, err := fmt.Sscan(value, &kib, &unit); err != nil || unit != "kB" {
			return 0, fmt.Errorf("RssAnon is %q: want a number of kB", strings.TrimSpace(value))
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("no RssAnon")
}

// ContainerPID returns the process ID on this machine of a pod's first
// container, as recorded by the cluster's node.
func (f *Fleet) ContainerPID(ctx context.Context, cluster, namespace, pod string) (int, error) {
	c, err := f.Client(cluster)
	if err != nil {
		return 0, err
	}
	found := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod}, found); err != nil {
		return 0, err
	}
	note := filepath.Join(f.podDir(cluster), string(found.UID), found.Spec.Containers[0].Name+".pid")
	content, err := os.ReadFile(note)
	if err != nil {
		return 0, fmt.Errorf("pod %s/%s on %s has no running process: %w", namespace, pod, cluster, err)
	}
	var id supervisor.Identity
	if _, err := fmt.Sscan(string(content), &id.PID, &id.Start); err != nil {
		return 0, fmt.Errorf("%s: %w", note, err)
	}
	now, err := supervisor.Identify(id.PID)
	if err != nil || now.Start != id.Start {
		return 0, fmt.Errorf("pod %s/%s on %s: its process %d is gone", namespace, pod, cluster, id.PID)
	}
	return id.PID, nil
}
