package journeys

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const mib = 1 << 20

// Idle, manager and agent stay small.
func TestMemoryWhenIdle(t *testing.T) {
	installed(t)
	enabled(t, cluster1, cluster2)
	ns := sandbox(t, "memory", cluster1, cluster2)
	hasProfile(t, ns, cluster1)
	hasProfile(t, ns, cluster2)
	settled(t, written...)
	for _, process := range []struct {
		what, cluster string
		pod           *corev1.Pod
		limit         int64
	}{
		{"manager", "hub", managerPod(t.Context(), t), 60 * mib},
		{"agent", cluster1, agentPod(t.Context(), t, cluster1), 40 * mib},
	} {
		rss, err := world.AnonymousRSS(t.Context(), process.cluster, process.pod.Namespace, process.pod.Name)
		apitest.Must(t, err)
		t.Logf("%s: %.1f MiB of anonymous RSS", process.what, float64(rss)/mib)
		if rss > process.limit {
			t.Errorf("%s: %d bytes of anonymous RSS, want at most %d", process.what, rss, process.limit)
		}
	}
}
