package inventory

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// Enabled as clusteradm does, disabled, and enabled again: profiles and claims are created,
// deleted, and created again; a claim that is not the addon's survives.
func TestAddonIsEnabledDisabledAndEnabledAgain(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster2)
	ns := journeys.Sandbox(t, "enable", journeys.Cluster2)
	journeys.HasProfile(t, ns, journeys.Cluster2)
	spoke := journeys.ClientOf(t, journeys.Cluster2)
	mine := journeys.Create(t, spoke,
		&clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine.example"},
			Spec: clusterv1alpha1.ClusterClaimSpec{Value: "kept"}})
	journeys.Sets(t, journeys.Cluster2, "theirs.example", "published")
	journeys.Shows(t, ns, journeys.Cluster2, "theirs.example", "published")

	journeys.Disable(t, journeys.Cluster2)
	journeys.HasNoProfile(t, ns, journeys.Cluster2)
	apitest.Within(t, journeys.Eventually, "the spoke is clean",
		func(ctx context.Context) error { return journeys.Clean(ctx, spoke) })
	if err := spoke.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil {
		t.Errorf("the claim that was not the addon's: %v", err)
	}
	if err := spoke.Get(t.Context(), types.NamespacedName{Name: "theirs.example"},
		journeys.Property("theirs.example", "")); err != nil {
		t.Errorf("the property itself: %v", err)
	}

	journeys.Enabled(t, journeys.Cluster2)
	journeys.HasProfile(t, ns, journeys.Cluster2)
	journeys.Shows(t, ns, journeys.Cluster2, "theirs.example", "published")
	journeys.Shows(t, ns, journeys.Cluster2, "mine.example", "kept")
}
