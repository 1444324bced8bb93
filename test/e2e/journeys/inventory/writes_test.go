package inventory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// The profile of a settled cluster is created with one POST and one status PATCH; a changed
// claim costs one PATCH per profile, whichever namespace it is in and whatever other clients write to it.
func TestProfileWritesAreTheFewestPossible(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	journeys.Sets(t, journeys.Cluster1, "count.example", "0")
	apitest.Within(t, journeys.Eventually, "the hub has the claim", func(ctx context.Context) error {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: journeys.Cluster1}}
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if !slices.Contains(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: "count.example", Value: "0"}) {
			return fmt.Errorf("it has %v", cluster.Status.ClusterClaims)
		}
		return nil
	})
	s := journeys.Set(t, "writes")
	journeys.InSet(t, journeys.Cluster1, s)
	first, second := journeys.Namespace(t, "writes"), journeys.Namespace(t, "writes")
	before := journeys.Settled(t, "clusterprofiles")

	journeys.Bind(t, first, s)
	journeys.HasProfile(t, first, journeys.Cluster1)
	journeys.Wrote(t, before, map[string]int{"hub: POST clusterprofiles": 1, "hub: PATCH clusterprofiles/status": 1},
		"clusterprofiles")

	journeys.Bind(t, second, s)
	journeys.HasProfile(t, second, journeys.Cluster1)
	journeys.Shows(t, second, journeys.Cluster1, "count.example", "0")
	before = journeys.Settled(t, "clusterprofiles", "clusterclaims")
	journeys.Sets(t, journeys.Cluster1, "count.example", "1")
	journeys.Shows(t, first, journeys.Cluster1, "count.example", "1")
	journeys.Shows(t, second, journeys.Cluster1, "count.example", "1")
	journeys.Wrote(t, before, map[string]int{"hub: PATCH clusterprofiles/status": 2, "cluster1: PATCH clusterclaims": 1},
		"clusterprofiles", "clusterclaims")

	// So it is beside another client that writes a property of its own. Versions are counted,
	// because a patch that meets a newer version than its own is refused and sent again.
	end := writesBeside(t, first, journeys.Cluster1)
	const edits = 5
	for n := range edits {
		value := fmt.Sprint(n + 2)
		journeys.Sets(t, journeys.Cluster1, "count.example", value)
		journeys.Shows(t, first, journeys.Cluster1, "count.example", value)
		journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
	}
	if theirs, all := end(); all-theirs != edits {
		t.Errorf("%d versions of the profile with %d writes of another client, want one for each of %d edits more",
			all, theirs, edits)
	}
}

const (
	// lastSeen is a property that another client writes to profiles, every theirEvery and
	// theirWrites times at least, as kubernetes-sigs' agent-sandbox does more slowly.
	lastSeen    = "agents.x-k8s.io/last-seen"
	theirEvery  = 500 * time.Millisecond
	theirWrites = 120
)

// writesBeside applies a property of its own to a profile until the function that it returns is
// called, which returns how often, and how many versions of the profile there were. None of them
// may lack what either writer wrote.
func writesBeside(t *testing.T, namespace, cluster string) (end func() (theirs, all int)) {
	t.Helper()
	profile := journeys.HasProfile(t, namespace, cluster)
	watch, err := journeys.Hub(t).Watch(t.Context(), &inventoryv1alpha1.ClusterProfileList{}, &client.ListOptions{
		Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: profile.ResourceVersion},
	})
	apitest.Must(t, err)
	t.Cleanup(watch.Stop)
	apply := func(value int) (*inventoryv1alpha1.ClusterProfile, error) {
		body := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"ClusterProfile","metadata":{"namespace":%q,"name":%q},
			"status":{"properties":[{"name":%q,"value":"%d"}]}}`,
			inventoryv1alpha1.GroupVersion, namespace, cluster, lastSeen, value)
		written := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}}
		return written, journeys.Hub(t).Status().Patch(t.Context(), written,
			client.RawPatch(types.ApplyPatchType, body), client.FieldOwner("agent-sandbox"), client.ForceOwnership)
	}
	ended, failed := make(chan struct{}), make(chan error, 1)
	writes, last := 0, ""
	go func() {
		tick := time.NewTicker(theirEvery)
		defer tick.Stop()
		for over := false; !over || writes < theirWrites; <-tick.C {
			written, err := apply(writes)
			if err != nil {
				failed <- err
				return
			}
			writes++
			last = written.ResourceVersion
			select {
			case <-ended:
				over = true
			default:
			}
		}
		failed <- nil
	}()
	return func() (theirs, all int) {
		t.Helper()
		close(ended)
		apitest.Must(t, <-failed)
		latest := map[string]int{lastSeen: -1, "count.example": -1}
		for event := range watch.ResultChan() {
			profile, ok := event.Object.(*inventoryv1alpha1.ClusterProfile)
			if !ok || profile.Name != cluster {
				t.Fatalf("the watch shows %+v", event)
			}
			all++
			for name := range latest {
				property, found := journeys.PropertyOf(profile, name)
				if !found && latest[name] < 0 {
					continue
				}
				value, err := strconv.Atoi(property.Value)
				if err != nil || value < latest[name] {
					t.Errorf("after %d, version %s has %+v", latest[name], profile.ResourceVersion, profile.Status.Properties)
				}
				latest[name] = max(latest[name], value)
			}
			if profile.ResourceVersion == last {
				break
			}
		}
		if latest[lastSeen] != writes-1 {
			t.Errorf("the last of %d writes beside the manager's is %d", writes, latest[lastSeen])
		}
		return writes, all
	}
}

// A new manager finds everything as it should be and writes nothing.
func TestManagerRestartWritesNothing(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "restart", journeys.Cluster1, journeys.Cluster2)
	journeys.Sets(t, journeys.Cluster1, "restart.example", "1")
	journeys.HasProfile(t, ns, journeys.Cluster2)
	journeys.Shows(t, ns, journeys.Cluster1, "restart.example", "1")
	before := journeys.Settled(t, journeys.AddonResources...)

	journeys.Replaced(t, "hub", journeys.ManagerPod(t.Context(), t))
	apitest.Within(t, journeys.Eventually, "the new manager leads and works", func(ctx context.Context) error {
		return journeys.Leads(ctx, t)
	})
	if diff := journeys.Observed(t, before, journeys.AddonResources...); len(diff) > 0 {
		t.Errorf("written by the new manager: %v", diff)
	}

	journeys.Sets(t, journeys.Cluster1, "restart.example", "2")
	journeys.Shows(t, ns, journeys.Cluster1, "restart.example", "2")
}

// A new agent finds everything as it should be and writes nothing. Its Pod is replaced, so
// OCM's work agent and the manager report its health: that is all.
func TestAgentRestartWritesNothing(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "agent", journeys.Cluster1)
	journeys.Sets(t, journeys.Cluster1, "agent.example", "1")
	journeys.Shows(t, ns, journeys.Cluster1, "agent.example", "1")
	journeys.Says(t, journeys.Cluster1, journeys.PropertiesPublished, metav1.ConditionTrue, "Published")
	before, reported := journeys.Settled(t, journeys.AddonResources...), lastReport(t, journeys.Cluster1)

	journeys.Replaced(t, journeys.Cluster1, journeys.AgentPod(t.Context(), t, journeys.Cluster1))
	diff := journeys.Observed(t, before, journeys.AddonResources...)
	// The health of the Pod, reported by others; the agent's own report is below.
	delete(diff, "hub: PATCH manifestworks/status")
	delete(diff, "hub: PATCH managedclusteraddons/status")
	if len(diff) > 0 {
		t.Errorf("written by the new agent: %v", diff)
	}
	if now := lastReport(t, journeys.Cluster1); now != reported {
		t.Errorf("the agent reported at %s, and again at %s", reported, now)
	}
	journeys.Sets(t, journeys.Cluster1, "agent.example", "2")
	journeys.Shows(t, ns, journeys.Cluster1, "agent.example", "2")
}

// lastReport is when the agent last wrote to its addon.
func lastReport(t *testing.T, cluster string) string {
	t.Helper()
	addon := journeys.AddonOf(cluster)
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(addon), addon))
	for _, entry := range addon.ManagedFields {
		if entry.Manager == "spoke.report" {
			return entry.Time.String()
		}
	}
	t.Fatalf("the agent of %s never wrote to its addon", cluster)
	return ""
}

// Changes of a ManagedCluster that are not published cost nothing: renewed leases,
// heartbeats, other labels and annotations.
func TestUnrelatedChangesWriteNothing(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "noise", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	renewed(t, journeys.Cluster1)
	journeys.Lease(t, journeys.Cluster1, 5)
	t.Cleanup(func() {
		object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: journeys.Cluster1}}
		if err := journeys.Hub(t).Patch(context.WithoutCancel(t.Context()), object,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":60}}`))); err != nil {
			t.Error(err)
		}
	})
	before := journeys.Settled(t, journeys.AddonResources...)
	for n := range 50 {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"journey":"%d"},"labels":{"noise":"%d"}}}`, n, n)
		object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: journeys.Cluster1}}
		apitest.Must(t, journeys.Hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
	}
	// Leases are renewed, and heartbeats sent, meanwhile.
	if diff := journeys.Observed(t, before, journeys.AddonResources...); len(diff) > 0 {
		t.Errorf("written for noise: %v", diff)
	}
}
