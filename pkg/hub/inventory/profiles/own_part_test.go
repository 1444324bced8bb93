package profiles

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Others' own fields are no interference; changes of ours are.
func TestOwnPart(t *testing.T) {
	profile := func(change func(*inventoryv1alpha1.ClusterProfile)) string {
		p := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "1",
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "cluster-inventory-addon", "region": "eu", "theirs": "a",
			},
			Annotations: map[string]string{"inventory.open-cluster-management.io/copied-labels": "region"},
		}}
		p.Spec.DisplayName = "c1"
		p.Status.Properties = []inventoryv1alpha1.Property{{Name: "p", Value: "v"}, {Name: "theirs", Value: "v"}}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{
			Subresource: "authorship", FieldsV1: metav1.NewFieldsV1(`["theirs"]`),
		}}
		p.Status.Conditions = []metav1.Condition{{Type: "Joined", Status: "True"}, {Type: "Theirs", Status: "True"}}
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "open-cluster-management"}, {Name: "theirs"}}
		change(p)
		return OwnPart(p)
	}
	before := profile(func(*inventoryv1alpha1.ClusterProfile) {})
	for name, test := range map[string]struct {
		change func(*inventoryv1alpha1.ClusterProfile)
		ours   bool
	}{
		"a version":         {change: func(p *inventoryv1alpha1.ClusterProfile) { p.ResourceVersion = "2" }},
		"a label of theirs": {change: func(p *inventoryv1alpha1.ClusterProfile) { p.Labels["theirs"] = "b" }},
		"an annotation of theirs": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Annotations["theirs"] = "b"
		}},
		"a condition of theirs": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.Conditions[1].Status = "False"
		}},
		"an access provider of theirs": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.AccessProviders[1].Cluster.Server = "s"
		}},
		"a property of theirs": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.Properties[1].Value = "other"
		}},
		"a property that they made theirs": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`["p","theirs"]`)
		}, ours: true},
		"the list of the properties": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Annotations["inventory.open-cluster-management.io/properties"] = `["p"]`
		}, ours: true},
		"a label of ours": {change: func(p *inventoryv1alpha1.ClusterProfile) { p.Labels["region"] = "us" },
			ours: true},
		"the mark": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			delete(p.Labels, "app.kubernetes.io/managed-by")
		}, ours: true},
		"the display name": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Spec.DisplayName = "other"
		}, ours: true},
		"a property": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.Properties[0].Value = "other"
		}, ours: true},
		"a condition of ours": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.Conditions[0].Status = "False"
		}, ours: true},
		"the version of Kubernetes": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.Version.Kubernetes = "v1"
		}, ours: true},
		"an access provider of this name": {change: func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.AccessProviders[0].Cluster.Server = "s"
		}, ours: true},
	} {
		t.Run(name, func(t *testing.T) {
			if changed := profile(test.change) != before; changed != test.ours {
				t.Errorf("counts as a change of ours: %t", changed)
			}
		})
	}
}
