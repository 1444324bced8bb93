package installation

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

const registrationRole = "open-cluster-management:cluster-manager-registration:controller"

// While OCM's own ClusterProfile gate is on, which its operator shows in this role, the
// addon writes no profile; when the gate is turned off, the addon continues in place.
func TestUpstreamGateStopsWriting(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "gate", journeys.Cluster1)
	profile := journeys.HasProfile(t, ns, journeys.Cluster1)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: registrationRole}}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(role), role))
	off := role.DeepCopy()
	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{"multicluster.x-k8s.io"},
			Resources: []string{"clusterprofiles"}, Verbs: []string{"create", "delete"}})
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), role, client.MergeFrom(off)))
	c := journeys.Hub(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), journeys.Soon)
		defer cancel()
		on := role.DeepCopy()
		role.Rules = off.Rules
		if err := c.Patch(ctx, role, client.MergeFrom(on)); err != nil {
			t.Error(err)
		}
	})
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse, "UpstreamGateOn", registrationRole)

	before := journeys.Settled(t, "clusterprofiles")
	journeys.Sets(t, journeys.Cluster1, "gated.example", "unseen")
	journeys.MoveTo(t.Context(), t, journeys.Cluster1, journeys.DefaultSet)
	journeys.Stays(t, journeys.Quiet, "the profile while the gate is on",
		journeys.SameProfile(t, journeys.HasProfile(t, ns, journeys.Cluster1)))
	if diff := journeys.Since(before, journeys.Counts(t, "clusterprofiles")); len(diff) > 0 {
		t.Errorf("written while the gate was on: %v", diff)
	}

	on := role.DeepCopy()
	role.Rules = off.Rules
	journeys.MoveTo(t.Context(), t, journeys.Cluster1, profile.Labels["multicluster.x-k8s.io/clusterset"])
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), role, client.MergeFrom(on)))
	journeys.Shows(t, ns, journeys.Cluster1, "gated.example", "unseen")
	if now := journeys.HasProfile(t, ns, journeys.Cluster1); now.UID != profile.UID {
		t.Error("the profile was recreated")
	}
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
}

// A missing role shows nothing, so nothing is written, unless the administrator asserts
// that the gate is off.
func TestUnknownGateNeedsTheAdministratorsWord(t *testing.T) {
	journeys.Installed(t, "--set", "upstreamRegistrationClusterRole=there-is-none")
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "assert", journeys.Cluster1)
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse,
		"UpstreamGateUnknown", "there-is-none", "upstreamGates=off")
	journeys.NoProfileComes(t, ns, journeys.Cluster1)
	journeys.Installed(t, "--set", "upstreamRegistrationClusterRole=there-is-none", "--set", "upstreamGates=off")
	journeys.HasProfile(t, ns, journeys.Cluster1)
}
