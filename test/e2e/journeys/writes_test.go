package journeys

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// What the addon writes to, on hub and spoke. The counts come from the API
// servers' own request metrics, so nobody's write escapes them.
var written = []string{"clusterprofiles", "clusterclaims", "manifestworks", "managedclusteraddons"}

// restartObservation is how long after a restart writes are looked for: longer
// than every sync that follows a start.
const restartObservation = 10 * time.Second

// counts are the writes so far, keyed "cluster: VERB resource".
func counts(t *testing.T, resources ...string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, cluster := range []string{"hub", cluster1, cluster2} {
		found, err := world.Writes(t.Context(), cluster, resources...)
		apitest.Must(t, err)
		for request, n := range found {
			all[cluster+": "+request] += n
		}
	}
	return all
}

// since is what was written between two counts.
func since(before, after map[string]int) map[string]int {
	diff := map[string]int{}
	for request, n := range after {
		if n != before[request] {
			diff[request] = n - before[request]
		}
	}
	return diff
}

// settled waits until nothing is written for a while, and returns the counts.
func settled(t *testing.T, resources ...string) map[string]int {
	t.Helper()
	last, from := counts(t, resources...), time.Now()
	apitest.Within(t, eventually, "the fleet settles", func(context.Context) error {
		now := counts(t, resources...)
		if diff := since(last, now); len(diff) > 0 {
			last, from = now, time.Now()
			return fmt.Errorf("just written: %v", diff)
		}
		if calm := time.Since(from); calm < quiet {
			return fmt.Errorf("calm for %s only", calm)
		}
		return nil
	})
	return last
}

// wrote compares what was written since with what had to be, once all is calm.
func wrote(t *testing.T, before map[string]int, want map[string]int, resources ...string) {
	t.Helper()
	if diff := cmp.Diff(want, since(before, settled(t, resources...))); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// The profile of a settled cluster is born with one POST and one status PATCH; a
// changed claim costs one PATCH per profile, whichever namespace it is in.
func TestProfileWritesAreTheFewestPossible(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	sets(t, cluster1, "count.example", "0")
	apitest.Within(t, eventually, "the hub has the claim", func(ctx context.Context) error {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster1}}
		if err := hub(t).Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if !slices.Contains(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: "count.example", Value: "0"}) {
			return fmt.Errorf("it has %v", cluster.Status.ClusterClaims)
		}
		return nil
	})
	s := set(t, "writes")
	inSet(t, cluster1, s)
	first, second := namespace(t, "writes"), namespace(t, "writes")
	before := settled(t, "clusterprofiles")

	bind(t, first, s)
	hasProfile(t, first, cluster1)
	wrote(t, before, map[string]int{"hub: POST clusterprofiles": 1, "hub: PATCH clusterprofiles/status": 1}, "clusterprofiles")

	bind(t, second, s)
	hasProfile(t, second, cluster1)
	shows(t, second, cluster1, "count.example", "0")
	before = settled(t, "clusterprofiles", "clusterclaims")
	sets(t, cluster1, "count.example", "1")
	shows(t, first, cluster1, "count.example", "1")
	shows(t, second, cluster1, "count.example", "1")
	wrote(t, before, map[string]int{"hub: PATCH clusterprofiles/status": 2, "cluster1: PATCH clusterclaims": 1}, "clusterprofiles", "clusterclaims")
}

// A new manager finds everything as it should be and writes nothing.
func TestManagerRestartWritesNothing(t *testing.T) {
	installed(t)
	enabled(t, cluster1, cluster2)
	ns := sandbox(t, "restart", cluster1, cluster2)
	sets(t, cluster1, "restart.example", "1")
	hasProfile(t, ns, cluster2)
	shows(t, ns, cluster1, "restart.example", "1")
	before := settled(t, written...)

	replaced(t, "hub", managerPod(t.Context(), t))
	apitest.Within(t, eventually, "the new manager leads and works", func(ctx context.Context) error {
		return leads(ctx, t)
	})
	stays(t, restartObservation, "no write by the new manager", noWrites(t, before))

	sets(t, cluster1, "restart.example", "2")
	shows(t, ns, cluster1, "restart.example", "2")
}

// A new agent finds everything as it should be and writes nothing. Its Pod goes
// and comes, so OCM's work agent and the manager report its health: that is all.
func TestAgentRestartWritesNothing(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "agent", cluster1)
	sets(t, cluster1, "agent.example", "1")
	shows(t, ns, cluster1, "agent.example", "1")
	says(t, cluster1, conditionPP, metav1.ConditionTrue, "Published")
	before, reported := settled(t, written...), lastReport(t, cluster1)

	replaced(t, cluster1, agentPod(t.Context(), t, cluster1))
	stays(t, restartObservation, "no write by the new agent", func(context.Context) error {
		diff := since(before, counts(t, written...))
		// The health of the Pod, told by others; what the agent tells is below.
		delete(diff, "hub: PATCH manifestworks/status")
		delete(diff, "hub: PATCH managedclusteraddons/status")
		if len(diff) > 0 {
			return fmt.Errorf("written: %v", diff)
		}
		if now := lastReport(t, cluster1); now != reported {
			return fmt.Errorf("the agent reported at %s, and again at %s", reported, now)
		}
		return nil
	})
	sets(t, cluster1, "agent.example", "2")
	shows(t, ns, cluster1, "agent.example", "2")
}

// lastReport is when the agent last wrote to its addon.
func lastReport(t *testing.T, cluster string) string {
	t.Helper()
	addon := addonOf(cluster)
	apitest.Must(t, hub(t).Get(t.Context(), client.ObjectKeyFromObject(addon), addon))
	for _, entry := range addon.ManagedFields {
		if entry.Manager == "spoke.report" {
			return entry.Time.String()
		}
	}
	t.Fatalf("the agent of %s never wrote to its addon", cluster)
	return ""
}

// What a ManagedCluster says beside what is published costs nothing: renewed
// leases, heartbeats, labels and annotations nobody asked for.
func TestUnrelatedChangesWriteNothing(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "noise", cluster1)
	hasProfile(t, ns, cluster1)
	renewed(t, cluster1)
	lease(t, cluster1, 5)
	t.Cleanup(func() {
		object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster1}}
		if err := hub(t).Patch(context.WithoutCancel(t.Context()), object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":60}}`))); err != nil {
			t.Error(err)
		}
	})
	before := settled(t, written...)
	n := 0
	stays(t, restartObservation, "no write for noise", func(ctx context.Context) error {
		n++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"journey":"%d"},"labels":{"noise":"%d"}}}`, n, n)
		object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster1}}
		if err := hub(t).Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		return noWrites(t, before)(ctx)
	})
}

func noWrites(t *testing.T, before map[string]int) func(context.Context) error {
	return func(context.Context) error {
		if diff := since(before, counts(t, written...)); len(diff) > 0 {
			return fmt.Errorf("written: %v", diff)
		}
		return nil
	}
}
