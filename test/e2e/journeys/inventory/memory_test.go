package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

const mib = 1 << 20

// Idle, manager and agent stay small.
func TestMemoryWhenIdle(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "memory", journeys.Cluster1, journeys.Cluster2)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster2)
	journeys.Settled(t, journeys.AddonResources...)
	for _, process := range []struct {
		what, cluster string
		pod           *corev1.Pod
		limit         int64
	}{
		{"manager", "hub", journeys.ManagerPod(t.Context(), t), 60 * mib},
		{"agent", journeys.Cluster1, journeys.AgentPod(t.Context(), t, journeys.Cluster1), 40 * mib},
	} {
		rss, err := journeys.Fleet.AnonymousRSS(t.Context(), process.cluster, process.pod.Namespace, process.pod.Name)
		apitest.Must(t, err)
		t.Logf("%s: %.1f MiB of anonymous RSS", process.what, float64(rss)/mib)
		if rss > process.limit {
			t.Errorf("%s: %d bytes of anonymous RSS, want at most %d", process.what, rss, process.limit)
		}
	}
}
