package journeys

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const registrationRole = "open-cluster-management:cluster-manager-registration:controller"

// While OCM's own ClusterProfile gate is on, which its operator shows in this
// role, the addon writes no profile; when it goes off, it goes on in place.
func TestUpstreamGateStopsWriting(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "gate", cluster1)
	profile := hasProfile(t, ns, cluster1)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: registrationRole}}
	apitest.Must(t, hub(t).Get(t.Context(), client.ObjectKeyFromObject(role), role))
	off := role.DeepCopy()
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"create", "delete"}})
	apitest.Must(t, hub(t).Patch(t.Context(), role, client.MergeFrom(off)))
	c := hub(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		on := role.DeepCopy()
		role.Rules = off.Rules
		if err := c.Patch(ctx, role, client.MergeFrom(on)); err != nil {
			t.Error(err)
		}
	})
	says(t, cluster1, conditionPS, metav1.ConditionFalse, "UpstreamGateOn", registrationRole)

	before := settled(t, "clusterprofiles")
	sets(t, cluster1, "gated.example", "unseen")
	moveTo(t.Context(), t, cluster1, defaultSet)
	stays(t, quiet, "the profile while the gate is on", sameProfile(t, hasProfile(t, ns, cluster1)))
	if diff := since(before, counts(t, "clusterprofiles")); len(diff) > 0 {
		t.Errorf("written while the gate was on: %v", diff)
	}

	on := role.DeepCopy()
	role.Rules = off.Rules
	moveTo(t.Context(), t, cluster1, profile.Labels["multicluster.x-k8s.io/clusterset"])
	apitest.Must(t, hub(t).Patch(t.Context(), role, client.MergeFrom(on)))
	shows(t, ns, cluster1, "gated.example", "unseen")
	if now := hasProfile(t, ns, cluster1); now.UID != profile.UID {
		t.Error("the profile was made anew")
	}
	says(t, cluster1, conditionPS, metav1.ConditionTrue, "Synced", ns)
}

// Where the role is missing nothing is told, so nothing is written, unless the
// administrator vouches.
func TestUnknownGateNeedsTheAdministratorsWord(t *testing.T) {
	installed(t, "--set", "upstreamRegistrationClusterRole=there-is-none")
	enabled(t, cluster1)
	ns := sandbox(t, "vouch", cluster1)
	says(t, cluster1, conditionPS, metav1.ConditionFalse, "UpstreamGateUnknown", "there-is-none", "--upstream-gates=off")
	noProfileComes(t, ns, cluster1)
	installed(t, "--set", "upstreamRegistrationClusterRole=there-is-none", "--set", "upstreamGates=off")
	hasProfile(t, ns, cluster1)
}
