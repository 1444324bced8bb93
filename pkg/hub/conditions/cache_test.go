package conditions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestTheCacheKeepsOurConditionsAndThePositionsOfOthers(t *testing.T) {
	ours := ocmtest.Condition("ProfilesSynced", "True", "Synced", "m")
	full := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "1", Annotations: map[string]string{"a": "b"},
		},
		Spec: addonv1beta1.ManagedClusterAddOnSpec{Configs: []addonv1beta1.AddOnConfig{{}}},
		Status: addonv1beta1.ManagedClusterAddOnStatus{
			Namespace: "x", HealthCheck: addonv1beta1.HealthCheck{Mode: "Customized"},
			Conditions: []metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "long"), ours},
		},
	}
	want := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "1"},
		Status: addonv1beta1.ManagedClusterAddOnStatus{
			HealthCheck: addonv1beta1.HealthCheck{Mode: "Customized"},
			Conditions:  []metav1.Condition{{Type: "Theirs"}, ours},
		},
	}
	var options cache.ByObject
	for _, options = range CacheOptions() {
		if options.Field.String() != "metadata.name=cluster-inventory" {
			t.Errorf("cached: %s", options.Field)
		}
	}
	for range 2 { // an object may be transformed twice
		got, err := options.Transform(full)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("cached (-want +got):\n%s", diff)
		}
		full = got.(*addonv1beta1.ManagedClusterAddOn)
	}
}
