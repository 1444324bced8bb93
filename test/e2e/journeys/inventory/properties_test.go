package inventory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// A spoke's owner sets, edits and deletes a property, and the hub follows. The time of a
// property is when its present value was first seen.
func TestPropertyIsEditedAndDeleted(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "edit", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)

	journeys.Sets(t, journeys.Cluster1, "region.example", "north")
	journeys.Sets(t, journeys.Cluster1, "zone.example", "a")
	first := journeys.Shows(t, ns, journeys.Cluster1, "region.example", "north")
	neighbour := journeys.Shows(t, ns, journeys.Cluster1, "zone.example", "a")
	if first.LastObservedTime.IsZero() {
		t.Error("a property without the time its value was first seen")
	}

	// The times in a profile are whole seconds.
	apitest.Within(t, journeys.Soon, "the next second", func(context.Context) error {
		if now := time.Now(); now.Unix() <= first.LastObservedTime.Unix() {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
	journeys.Sets(t, journeys.Cluster1, "region.example", "south")
	second := journeys.Shows(t, ns, journeys.Cluster1, "region.example", "south")
	if !first.LastObservedTime.Before(&second.LastObservedTime) {
		t.Errorf("the time of the edited property was %s and is %s", first.LastObservedTime, second.LastObservedTime)
	}
	if now := journeys.Shows(t, ns, journeys.Cluster1, "zone.example", "a"); now != neighbour {
		t.Errorf("the other property changed from %+v to %+v", neighbour, now)
	}

	journeys.Unsets(t, journeys.Cluster1, "region.example")
	journeys.Lacks(t, ns, journeys.Cluster1, "region.example")
	journeys.Shows(t, ns, journeys.Cluster1, "zone.example", "a")
}

// A property that must stay on its spoke does, even if it is labelled later.
func TestSpokeOnlyPropertyStaysHome(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "home", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	homebody := journeys.Property("homebody.example", "unknown")
	homebody.SetLabels(map[string]string{journeys.SpokeOnly: ""})
	journeys.Create(t, journeys.ClientOf(t, journeys.Cluster1), homebody)
	journeys.Sets(t, journeys.Cluster1, "secretish.example", "known")
	journeys.Shows(t, ns, journeys.Cluster1, "secretish.example", "known")

	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, journeys.SpokeOnly)
	patch := client.RawPatch(types.MergePatchType, label)
	apitest.Must(t, journeys.ClientOf(t, journeys.Cluster1).Patch(t.Context(), journeys.Property("secretish.example", ""),
		patch))
	journeys.Lacks(t, ns, journeys.Cluster1, "secretish.example")
	journeys.Says(t, journeys.Cluster1, journeys.PropertiesPublished,
		metav1.ConditionTrue, "Published", "homebody.example", "secretish.example")
	journeys.Stays(t, journeys.Quiet, "the property that never was to leave", func(ctx context.Context) error {
		profile, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, journeys.Cluster1)
		if err != nil {
			return err
		}
		if found, ok := journeys.PropertyOf(profile, "homebody.example"); ok {
			return fmt.Errorf("the hub shows %+v", found)
		}
		return nil
	})
}

// A value that no hub would accept is left out by itself and reported, on the hub and to
// its owner on the spoke; the others are published.
func TestOversizeValueIsLeftOutAlone(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "oversize", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.Sets(t, journeys.Cluster1, "huge.example", strings.Repeat("x", 1025))
	journeys.Sets(t, journeys.Cluster1, "fits.example", strings.Repeat("x", 1024))
	journeys.Shows(t, ns, journeys.Cluster1, "fits.example", strings.Repeat("x", 1024))
	journeys.Says(t, journeys.Cluster1, journeys.PropertiesPublished,
		metav1.ConditionFalse, "PartiallyPublished", "huge.example")
	hasEvent(t, journeys.Cluster1, "huge.example", "ValueTooLong")
	journeys.Lacks(t, ns, journeys.Cluster1, "huge.example")

	journeys.Sets(t, journeys.Cluster1, "huge.example", "small now")
	journeys.Shows(t, ns, journeys.Cluster1, "huge.example", "small now")
	journeys.Says(t, journeys.Cluster1, journeys.PropertiesPublished, metav1.ConditionTrue, "Published")
	journeys.Says(t, journeys.Cluster1, "Degraded", metav1.ConditionFalse, "AsExpected")
}

// A claim without a value, which a user created by hand, affects nothing else.
func TestClaimWithoutValueIsLeftOutAlone(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "empty", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.Create(t, journeys.ClientOf(t, journeys.Cluster1),
		&clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "empty.example"}})
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced,
		metav1.ConditionFalse, "InvalidProperties", "empty.example")
	journeys.Sets(t, journeys.Cluster1, "after.example", "flows")
	journeys.Shows(t, ns, journeys.Cluster1, "after.example", "flows")
	journeys.Lacks(t, ns, journeys.Cluster1, "empty.example")
}

// Someone else's claim of the same name is left as it is, and reported.
func TestForeignClaimIsLeftAlone(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "claim", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	spoke := journeys.ClientOf(t, journeys.Cluster1)
	claim := journeys.Create(t, spoke, &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "taken.example"},
		Spec:       clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
	})
	journeys.Sets(t, journeys.Cluster1, "taken.example", "ours")
	journeys.Says(t, journeys.Cluster1, journeys.PropertiesPublished,
		metav1.ConditionFalse, "PartiallyPublished", "taken.example")
	journeys.Shows(t, ns, journeys.Cluster1, "taken.example", "theirs")
	journeys.Stays(t, journeys.Quiet, "the other claim", func(ctx context.Context) error {
		now := &clusterv1alpha1.ClusterClaim{}
		if err := spoke.Get(ctx, client.ObjectKeyFromObject(claim), now); err != nil {
			return err
		}
		if now.ResourceVersion != claim.ResourceVersion {
			return fmt.Errorf("it changed to %+v", now)
		}
		return nil
	})
}

// More properties than the klusterlet reports: those cut off are named, with the
// setting that lifts the limit.
func TestClaimLimitIsForeseen(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "limit", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	// The klusterlet reports 20 claims in the order of their names.
	for i := range 21 {
		journeys.Sets(t, journeys.Cluster1, fmt.Sprintf("limit-%02d.example", i), "set")
	}
	journeys.Says(t, journeys.Cluster1, journeys.PropertiesPublished, metav1.ConditionFalse,
		"ClaimLimitExceeded", "limit-20.example", "maxCustomClusterClaims")
	journeys.Says(t, journeys.Cluster1, "Degraded", metav1.ConditionTrue,
		"ClaimLimitExceeded", journeys.PropertiesPublished)
	journeys.Shows(t, ns, journeys.Cluster1, "limit-19.example", "set")
	journeys.Lacks(t, ns, journeys.Cluster1, "limit-20.example")

	journeys.Unsets(t, journeys.Cluster1, "limit-00.example")
	journeys.Shows(t, ns, journeys.Cluster1, "limit-20.example", "set")
	journeys.Says(t, journeys.Cluster1, journeys.PropertiesPublished, metav1.ConditionTrue, "Published")
	journeys.Says(t, journeys.Cluster1, "Degraded", metav1.ConditionFalse, "AsExpected")
}
