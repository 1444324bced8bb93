package addon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
)

// After a start, conditions stay until their clusters were reconciled. Unknown outcomes are
// not polled, and delay no other condition.
func TestUnknownOutcomeLeavesTheCondition(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	o := configuration.NewOutcomes(w)
	desired := func() *conditions.Desired {
		t.Helper()
		desired, err := o.Desired(t.Context(), addon.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		return desired
	}
	if got := desired(); got == nil || !got.Absent {
		t.Errorf("without a condition: %+v", got)
	}
	apitest.EditStatus(w, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{ocmtest.Condition("ConfigurationApplied", "False", "R", "m")}
	})
	asItIs := &conditions.Desired{Status: metav1.ConditionFalse, Reason: "R", Message: "m"}
	if diff := cmp.Diff(asItIs, desired()); diff != "" {
		t.Errorf("with a condition (-want +got):\n%s", diff)
	}
	o.Record(addon.Namespace, configuration.Decision{Known: true}, "")
	if got := desired(); got == nil || !got.Absent {
		t.Errorf("once it is known: %+v", got)
	}
}
