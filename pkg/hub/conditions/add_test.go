package conditions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/predicatetest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestAddonChanged(t *testing.T) {
	full := ocmtest.Addon("c")
	full.Status.Conditions = []metav1.Condition{
		ocmtest.Condition("ProfilesSynced", "True", "R", "m"), ocmtest.Condition("Available", "True", "R", "m"),
		ocmtest.Condition("PropertiesPublished", "False", "PartiallyPublished", "m"),
		ocmtest.Condition("Degraded", "True", "PartiallyPublished", "m"),
	}
	edit := predicatetest.As[*addonv1beta1.ManagedClusterAddOn]
	predicatetest.Check(t, kube.OnChange(addonChanged), map[string]predicatetest.Update{
		"another's condition": {Before: full, Want: false, Edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions[1].Message = "n"
		})},
		"ours altered": {Before: full, Want: true, Edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions[0].Message = "n"
		})},
		"ours gone": {Before: full, Want: true, Edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = a.Status.Conditions[1:]
		})},
		"what the agent reports": {Before: full, Want: true, Edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions[2].Reason = "ClaimLimitExceeded"
		})},
		"only the text of what the agent reports": {Before: full, Want: false, Edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions[2].Message = "n"
		})},
		"Degraded is gone": {Before: full, Want: true, Edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = a.Status.Conditions[:3]
		})},
		"set up": {Before: full, Want: true, Edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.HealthCheck.Mode = "Customized"
		})},
	})
}
