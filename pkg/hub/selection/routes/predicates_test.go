package routes

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/predicatetest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestMembershipChanged(t *testing.T) {
	predicatetest.Check(t, kube.OnChange(membershipChanged), ocmtest.ClusterUpdates(t, "a label", "accepted"))
}

func TestSetChanged(t *testing.T) {
	set := ocmtest.LabelSet("s", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
	edit := predicatetest.As[*clusterv1beta2.ManagedClusterSet]
	predicatetest.Check(t, kube.OnChange(setChanged), map[string]predicatetest.Update{
		"its count of clusters": {Before: set, Want: false, Edit: edit(func(s *clusterv1beta2.ManagedClusterSet) {
			s.Status.Conditions = []metav1.Condition{ocmtest.Condition("ClusterSetEmpty",
				"False", "R", "2 ManagedClusters selected")}
		})},
		"its selector": {Before: set, Want: true, Edit: edit(func(s *clusterv1beta2.ManagedClusterSet) {
			s.Spec.ClusterSelector.LabelSelector.MatchLabels["a"] = "c"
		})},
		"its selector's type": {Before: set, Want: true, Edit: edit(func(s *clusterv1beta2.ManagedClusterSet) {
			s.Spec.ClusterSelector.SelectorType = "ExclusiveClusterSetLabel"
		})},
	})
}

func TestBindingChanged(t *testing.T) {
	binding := ocmtest.Binding("", "s")
	edit := predicatetest.As[*clusterv1beta2.ManagedClusterSetBinding]
	predicatetest.Check(t, kube.OnChange(bindingChanged), map[string]predicatetest.Update{
		"since when it is bound": {Before: binding, Want: false, Edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Status.Conditions[0].LastTransitionTime = metav1.Now()
		})},
		"another label": {Before: binding, Want: false, Edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Labels = map[string]string{"a": "b"}
		})},
		"the label that keeps it from publishing": {Before: binding, Want: true, Edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
		})},
		"found unbound": {Before: binding, Want: true, Edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Status.Conditions[0].Status = "False"
		})},
		"no longer found bound or unbound": {Before: binding, Want: true, Edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Status.Conditions = nil
		})},
	})
}

func TestPlacementPredicates(t *testing.T) {
	publishing := ocmtest.Publishing("p", 1)
	other := publishing.DeepCopy()
	other.Labels = nil
	edit := predicatetest.As[*clusterv1beta1.Placement]
	label := edit(func(p *clusterv1beta1.Placement) { p.Labels = publishing.Labels })
	unlabel := edit(func(p *clusterv1beta1.Placement) { p.Labels = nil })
	number := edit(func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters++ })
	satisfied := edit(func(p *clusterv1beta1.Placement) { p.Status.Conditions[0].Status = "False" })
	misconfigured := edit(func(p *clusterv1beta1.Placement) {
		p.Status.Conditions = append(p.Status.Conditions, ocmtest.Condition("PlacementMisconfigured", "True", "R", ""))
	})
	groups := edit(func(p *clusterv1beta1.Placement) {
		p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{}}
	})

	scope, status := ofPublishing(placementScopeChanged), ofPublishing(placementStatusChanged)
	for name, p := range map[string]predicate.Predicate{"scope": scope, "status": status} {
		if !p.Create(event.CreateEvent{Object: publishing}) || !p.Delete(event.DeleteEvent{Object: publishing}) {
			t.Errorf("%s: a publishing Placement that comes or goes must pass", name)
		}
		if p.Create(event.CreateEvent{Object: other}) || p.Delete(event.DeleteEvent{Object: other}) {
			t.Errorf("%s: another Placement must not pass", name)
		}
	}
	predicatetest.Check(t, scope, map[string]predicatetest.Update{
		"scope: begins to publish":    {Before: other, Edit: label, Want: true},
		"scope: ceases to publish":    {Before: publishing, Edit: unlabel, Want: true},
		"scope: its number":           {Before: publishing, Edit: number, Want: false},
		"scope: of another Placement": {Before: other, Edit: number, Want: false},
	})
	predicatetest.Check(t, status, map[string]predicatetest.Update{
		"status: its number":           {Before: publishing, Edit: number, Want: true},
		"status: satisfied":            {Before: publishing, Edit: satisfied, Want: true},
		"status: misconfigured":        {Before: publishing, Edit: misconfigured, Want: true},
		"status: its decision groups":  {Before: publishing, Edit: groups, Want: false},
		"status: of another Placement": {Before: other, Edit: number, Want: false},
	})
}

func TestDecisionChanged(t *testing.T) {
	decision := ocmtest.Slice("p-1", "p", "a", "b")
	edit := predicatetest.As[*clusterv1beta1.PlacementDecision]
	predicatetest.Check(t, kube.OnChange(decisionChanged), map[string]predicatetest.Update{
		"a score or reason": {Before: decision, Want: false, Edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions[0].Score, d.Status.Decisions[0].Reason = 7, "R"
		})},
		"a place not filled yet": {Before: decision, Want: false, Edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{})
		})},
		"a cluster less": {Before: decision, Want: true, Edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions = d.Status.Decisions[:1]
		})},
		"another cluster": {Before: decision, Want: true, Edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions[1].ClusterName = "c"
		})},
		"another Placement": {Before: decision, Want: true, Edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Labels = map[string]string{"cluster.open-cluster-management.io/placement": "q"}
		})},
	})
}

func TestRequirementChanged(t *testing.T) {
	namespace := kube.Partial(kube.NamespaceKind)
	namespace.Annotations = map[string]string{"a": "b"}
	edit := predicatetest.As[*metav1.PartialObjectMetadata]
	predicatetest.Check(t, kube.OnChange(requirementChanged), map[string]predicatetest.Update{
		"another annotation": {Before: namespace, Want: false,
			Edit: edit(func(n *metav1.PartialObjectMetadata) { n.Annotations["a"] = "c" })},
		"the requirement": {Before: namespace, Want: true, Edit: edit(func(n *metav1.PartialObjectMetadata) {
			n.Annotations["inventory.open-cluster-management.io/require-placement"] = "true"
		})},
	})
}
