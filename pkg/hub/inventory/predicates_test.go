package inventory

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/predicatetest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestContentChanged(t *testing.T) {
	predicatetest.Check(t, kube.OnChange(profiles.ContentChanged), ocmtest.ClusterUpdates(t, "version", "a claim", "no claims",
		"the status of a shown condition", "the message of a shown condition",
		"a new shown condition", "a removed shown condition"))
}

func TestGuardChanged(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "1"}}
	if guardChanged(role, role) {
		t.Error("a resync must not pass")
	}
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a",
		Generation: 1, Annotations: map[string]string{"a": "b"}}}
	edit := predicatetest.As[*addonv1beta1.ClusterManagementAddOn]
	predicatetest.Check(t, kube.OnChange(guardChanged), map[string]predicatetest.Update{
		"a kind without generations": {Before: role, Want: true},
		"the progress of a rollout": {Before: definition, Want: false, Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) {
			d.Status.InstallProgressions = []addonv1beta1.InstallProgression{{Conditions: []metav1.Condition{ocmtest.Condition(
				"Progressing", "True", "R", "7/3500")}}}
		})},
		"the spec": {Before: definition, Want: true,
			Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Generation = 2 })},
		"an annotation": {Before: definition, Want: true,
			Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Annotations["a"] = "c" })},
		"a label": {Before: definition, Want: true,
			Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Labels = map[string]string{"a": "b"} })},
	})
}
