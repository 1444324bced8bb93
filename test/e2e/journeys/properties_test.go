package journeys

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
)

// A spoke's owner sets, edits and deletes a property, and the hub follows. The
// time of a property is when its present value was first seen.
func TestPropertyIsEditedAndDeleted(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "edit", cluster1)
	hasProfile(t, ns, cluster1)

	sets(t, cluster1, "region.example", "north")
	sets(t, cluster1, "zone.example", "a")
	first := shows(t, ns, cluster1, "region.example", "north")
	neighbour := shows(t, ns, cluster1, "zone.example", "a")
	if first.LastObservedTime.IsZero() {
		t.Error("a property without the time its value was first seen")
	}

	// The times in a profile are whole seconds.
	apitest.Within(t, soon, "the next second", func(context.Context) error {
		if now := time.Now(); now.Unix() <= first.LastObservedTime.Unix() {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
	sets(t, cluster1, "region.example", "south")
	second := shows(t, ns, cluster1, "region.example", "south")
	if !first.LastObservedTime.Before(&second.LastObservedTime) {
		t.Errorf("the time of the edited property was %s and is %s", first.LastObservedTime, second.LastObservedTime)
	}
	if now := shows(t, ns, cluster1, "zone.example", "a"); now != neighbour {
		t.Errorf("the other property changed from %+v to %+v", neighbour, now)
	}

	unsets(t, cluster1, "region.example")
	lacks(t, ns, cluster1, "region.example")
	shows(t, ns, cluster1, "zone.example", "a")
}

// A property that must stay on its spoke does, also when that is said later.
func TestSpokeOnlyPropertyStaysHome(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "home", cluster1)
	hasProfile(t, ns, cluster1)
	homebody := property("homebody.example", "unknown")
	homebody.SetLabels(map[string]string{spokeOnly: ""})
	create(t, clientOf(t, cluster1), homebody)
	sets(t, cluster1, "secretish.example", "known")
	shows(t, ns, cluster1, "secretish.example", "known")

	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, spokeOnly)
	patch := client.RawPatch(types.MergePatchType, label)
	apitest.Must(t, clientOf(t, cluster1).Patch(t.Context(), property("secretish.example", ""), patch))
	lacks(t, ns, cluster1, "secretish.example")
	says(t, cluster1, conditionPP, metav1.ConditionTrue, "Published", "homebody.example", "secretish.example")
	stays(t, quiet, "the property that never was to leave", func(ctx context.Context) error {
		profile, err := profileOf(ctx, hub(t), ns, cluster1)
		if err != nil {
			return err
		}
		if found, ok := propertyOf(profile, "homebody.example"); ok {
			return fmt.Errorf("the hub shows %+v", found)
		}
		return nil
	})
}

// A value no hub would take is left out by itself and named; the others go on.
func TestOversizeValueIsLeftOutAlone(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "oversize", cluster1)
	hasProfile(t, ns, cluster1)
	sets(t, cluster1, "huge.example", strings.Repeat("x", 1025))
	sets(t, cluster1, "fits.example", strings.Repeat("x", 1024))
	shows(t, ns, cluster1, "fits.example", strings.Repeat("x", 1024))
	says(t, cluster1, conditionPP, metav1.ConditionFalse, "PartiallyPublished", "huge.example")
	lacks(t, ns, cluster1, "huge.example")

	sets(t, cluster1, "huge.example", "small now")
	shows(t, ns, cluster1, "huge.example", "small now")
	says(t, cluster1, conditionPP, metav1.ConditionTrue, "Published")
}

// A claim with no value, which somebody made by hand, costs nobody else anything.
func TestClaimWithoutValueIsLeftOutAlone(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "empty", cluster1)
	hasProfile(t, ns, cluster1)
	create(t, clientOf(t, cluster1), &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "empty.example"}})
	says(t, cluster1, conditionPS, metav1.ConditionFalse, "InvalidProperties", "empty.example")
	sets(t, cluster1, "after.example", "flows")
	shows(t, ns, cluster1, "after.example", "flows")
	lacks(t, ns, cluster1, "empty.example")
}

// Someone else's claim of the same name is left as it is, and reported.
func TestForeignClaimIsLeftAlone(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "claim", cluster1)
	hasProfile(t, ns, cluster1)
	spoke := clientOf(t, cluster1)
	claim := create(t, spoke, &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "taken.example"},
		Spec:       clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
	})
	sets(t, cluster1, "taken.example", "ours")
	says(t, cluster1, conditionPP, metav1.ConditionFalse, "PartiallyPublished", "taken.example")
	shows(t, ns, cluster1, "taken.example", "theirs")
	stays(t, quiet, "the other claim", func(ctx context.Context) error {
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
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "limit", cluster1)
	hasProfile(t, ns, cluster1)
	// The klusterlet reports 20 claims in the order of their names.
	for i := range 21 {
		sets(t, cluster1, fmt.Sprintf("limit-%02d.example", i), "set")
	}
	says(t, cluster1, conditionPP, metav1.ConditionFalse, "ClaimLimitExceeded", "limit-20.example", "maxCustomClusterClaims")
	shows(t, ns, cluster1, "limit-19.example", "set")
	lacks(t, ns, cluster1, "limit-20.example")

	unsets(t, cluster1, "limit-00.example")
	shows(t, ns, cluster1, "limit-20.example", "set")
	says(t, cluster1, conditionPP, metav1.ConditionTrue, "Published")
}
