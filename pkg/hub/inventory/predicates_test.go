package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

type change struct {
	before client.Object
	edit   func(client.Object)
	want   bool
}

// as makes an edit of a kind an edit of any object.
func as[T client.Object](edit func(T)) func(client.Object) {
	return func(obj client.Object) { edit(obj.(T)) }
}

func checkUpdates(t *testing.T, p predicate.Predicate, tests map[string]change) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			updated := test.before.DeepCopyObject().(client.Object)
			updated.SetResourceVersion("2")
			if test.edit != nil {
				test.edit(updated)
			}
			if got := p.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: updated}); got != test.want {
				t.Errorf("passes is %t, want %t", got, test.want)
			}
		})
	}
}

func TestOnChangePassesComingAndGoing(t *testing.T) {
	p := onChange(never)
	obj := addon("c")
	if !p.Create(event.CreateEvent{Object: obj}) || !p.Create(event.CreateEvent{Object: obj, IsInInitialList: true}) || !p.Delete(event.DeleteEvent{Object: obj}) {
		t.Error("creation, the initial list and deletion must pass")
	}
	now := metav1.Now()
	checkUpdates(t, p, map[string]change{
		"nothing but a version":      {before: obj, want: false},
		"deletion begins":            {before: obj, edit: func(o client.Object) { o.SetDeletionTimestamp(&now) }, want: true},
		"another object of the name": {before: obj, edit: func(o client.Object) { o.SetUID("other") }, want: true},
		"an addon's status": {before: obj, edit: as(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = []metav1.Condition{condition("Available", "True", "R", "")}
		}), want: false},
	})
}

func TestAfterStart(t *testing.T) {
	p := afterStart(onChange(guardChanged))
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	if p.Create(event.CreateEvent{Object: obj, IsInInitialList: true}) {
		t.Error("the initial list must not pass")
	}
	if !p.Create(event.CreateEvent{Object: obj}) || !p.Delete(event.DeleteEvent{Object: obj}) {
		t.Error("creation and deletion must pass")
	}
	if p.Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}) {
		t.Error("a resync must not pass")
	}
	checkUpdates(t, p, map[string]change{"a new version": {before: obj, want: true}})
}

func TestClusterChanged(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "1", Labels: map[string]string{"a": "b"}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{
			Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1"},
			Conditions:    []metav1.Condition{condition("ManagedClusterConditionAvailable", "True", "R", "m")},
			ClusterClaims: []clusterv1.ManagedClusterClaim{claim("a", "1")},
		},
	}
	edit := as[*clusterv1.ManagedCluster]
	checkUpdates(t, onChange(clusterChanged), map[string]change{
		"a resync or heartbeat": {before: cluster, want: false},
		"capacity": {before: cluster, want: false, edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("1")}
			c.Status.Allocatable = clusterv1.ResourceList{"cpu": resource.MustParse("1")}
		})},
		"a taint, the lease duration, an annotation": {before: cluster, want: false, edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}}
			c.Spec.LeaseDurationSeconds = 9
			c.Annotations = map[string]string{"a": "b"}
		})},
		"a condition that is not shown": {before: cluster, want: false, edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = append(c.Status.Conditions, condition("ManagedClusterConditionClockSynced", "True", "R", ""))
		})},
		"since when alone": {before: cluster, want: false, edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].LastTransitionTime = metav1.Now()
		})},
		"a label":   {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"a": "c"} })},
		"accepted":  {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })},
		"version":   {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v2" })},
		"a claim":   {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims[0].Value = "2" })},
		"no claims": {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = nil })},
		"the status of a condition shown": {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].Status = "False"
		})},
		"the message of a condition shown": {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].Message = "n"
		})},
		"a condition shown comes": {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = append(c.Status.Conditions, condition("ManagedClusterJoined", "True", "R", ""))
		})},
		"a condition shown goes": {before: cluster, want: true, edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.Conditions = nil })},
	})
}

func TestSetChanged(t *testing.T) {
	set := labelSet("s", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
	edit := as[*clusterv1beta2.ManagedClusterSet]
	checkUpdates(t, onChange(setChanged), map[string]change{
		"its count of clusters": {before: set, want: false, edit: edit(func(s *clusterv1beta2.ManagedClusterSet) {
			s.Status.Conditions = []metav1.Condition{condition("ClusterSetEmpty", "False", "R", "2 ManagedClusters selected")}
		})},
		"its selector": {before: set, want: true, edit: edit(func(s *clusterv1beta2.ManagedClusterSet) {
			s.Spec.ClusterSelector.LabelSelector.MatchLabels["a"] = "c"
		})},
		"its selector's type": {before: set, want: true, edit: edit(func(s *clusterv1beta2.ManagedClusterSet) {
			s.Spec.ClusterSelector.SelectorType = "ExclusiveClusterSetLabel"
		})},
	})
}

func TestBindingChanged(t *testing.T) {
	binding := bound("s", nil).binding
	edit := as[*clusterv1beta2.ManagedClusterSetBinding]
	checkUpdates(t, onChange(bindingChanged), map[string]change{
		"since when it is bound": {before: binding, want: false, edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Status.Conditions[0].LastTransitionTime = metav1.Now()
		})},
		"another label": {before: binding, want: false, edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Labels = map[string]string{"a": "b"}
		})},
		"the label that keeps it from publishing": {before: binding, want: true, edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
		})},
		"found unbound": {before: binding, want: true, edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Status.Conditions[0].Status = "False"
		})},
		"no longer found bound or unbound": {before: binding, want: true, edit: edit(func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Status.Conditions = nil
		})},
	})
}

func TestPlacementPredicates(t *testing.T) {
	publishing := chooser("p", false, 1).placement
	other := publishing.DeepCopy()
	other.Labels = nil
	edit := as[*clusterv1beta1.Placement]
	label := edit(func(p *clusterv1beta1.Placement) { p.Labels = publishing.Labels })
	unlabel := edit(func(p *clusterv1beta1.Placement) { p.Labels = nil })
	number := edit(func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters++ })
	satisfied := edit(func(p *clusterv1beta1.Placement) { p.Status.Conditions[0].Status = "False" })
	misconfigured := edit(func(p *clusterv1beta1.Placement) {
		p.Status.Conditions = append(p.Status.Conditions, condition("PlacementMisconfigured", "True", "R", ""))
	})
	groups := edit(func(p *clusterv1beta1.Placement) { p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{}} })

	scope, status := ofPublishing(placementScopeChanged), ofPublishing(placementStatusChanged)
	for name, p := range map[string]predicate.Predicate{"scope": scope, "status": status} {
		if !p.Create(event.CreateEvent{Object: publishing}) || !p.Delete(event.DeleteEvent{Object: publishing}) {
			t.Errorf("%s: a publishing Placement that comes or goes must pass", name)
		}
		if p.Create(event.CreateEvent{Object: other}) || p.Delete(event.DeleteEvent{Object: other}) {
			t.Errorf("%s: another Placement must not pass", name)
		}
	}
	checkUpdates(t, scope, map[string]change{
		"scope: begins to publish":    {before: other, edit: label, want: true},
		"scope: ceases to publish":    {before: publishing, edit: unlabel, want: true},
		"scope: its number":           {before: publishing, edit: number, want: false},
		"scope: of another Placement": {before: other, edit: number, want: false},
	})
	checkUpdates(t, status, map[string]change{
		"status: its number":           {before: publishing, edit: number, want: true},
		"status: satisfied":            {before: publishing, edit: satisfied, want: true},
		"status: misconfigured":        {before: publishing, edit: misconfigured, want: true},
		"status: its decision groups":  {before: publishing, edit: groups, want: false},
		"status: of another Placement": {before: other, edit: number, want: false},
	})
}

func TestDecisionChanged(t *testing.T) {
	decision := slice("p-1", "p", "a", "b")
	edit := as[*clusterv1beta1.PlacementDecision]
	checkUpdates(t, onChange(decisionChanged), map[string]change{
		"a score or reason": {before: decision, want: false, edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions[0].Score, d.Status.Decisions[0].Reason = 7, "R"
		})},
		"a place not filled yet": {before: decision, want: false, edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{})
		})},
		"a cluster less": {before: decision, want: true, edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions = d.Status.Decisions[:1]
		})},
		"another cluster": {before: decision, want: true, edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions[1].ClusterName = "c"
		})},
		"another Placement": {before: decision, want: true, edit: edit(func(d *clusterv1beta1.PlacementDecision) {
			d.Labels = map[string]string{"cluster.open-cluster-management.io/placement": "q"}
		})},
	})
}

func TestRequirementChanged(t *testing.T) {
	namespace := partial(namespaceKind)
	namespace.Annotations = map[string]string{"a": "b"}
	edit := as[*metav1.PartialObjectMetadata]
	checkUpdates(t, onChange(requirementChanged), map[string]change{
		"another annotation": {before: namespace, want: false, edit: edit(func(n *metav1.PartialObjectMetadata) { n.Annotations["a"] = "c" })},
		"the requirement": {before: namespace, want: true, edit: edit(func(n *metav1.PartialObjectMetadata) {
			n.Annotations["inventory.open-cluster-management.io/require-placement"] = "true"
		})},
	})
}

func TestGuardChanged(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1, Annotations: map[string]string{"a": "b"}}}
	edit := as[*addonv1beta1.ClusterManagementAddOn]
	checkUpdates(t, onChange(guardChanged), map[string]change{
		"a kind without generations": {before: role, want: true},
		"the progress of a rollout": {before: definition, want: false, edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) {
			d.Status.InstallProgressions = []addonv1beta1.InstallProgression{{Conditions: []metav1.Condition{condition("Progressing", "True", "R", "7/3500")}}}
		})},
		"the spec":      {before: definition, want: true, edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Generation = 2 })},
		"an annotation": {before: definition, want: true, edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Annotations["a"] = "c" })},
		"a label":       {before: definition, want: true, edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Labels = map[string]string{"a": "b"} })},
	})
}

func TestReportChanged(t *testing.T) {
	reported := addon("c")
	reported.Status.Conditions = []metav1.Condition{condition("ProfilesSynced", "True", "R", "m"), condition("Available", "True", "R", "m")}
	edit := as[*addonv1beta1.ManagedClusterAddOn]
	checkUpdates(t, onChange(reportChanged), map[string]change{
		"another's condition": {before: reported, want: false, edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions[1].Message = "n" })},
		"ours altered":        {before: reported, want: true, edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions[0].Message = "n" })},
		"ours gone":           {before: reported, want: true, edit: edit(func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions = a.Status.Conditions[1:] })},
	})
}

func TestIsRelevantCRD(t *testing.T) {
	for name, want := range map[string]bool{
		"clusterprofiles.multicluster.x-k8s.io":                 true,
		"managedclusteraddons.addon.open-cluster-management.io": true,
		"placementdecisions.cluster.open-cluster-management.io": true,
		"placementdecisions.multicluster.x-k8s.io":              false,
		"others.example.com":                                    false,
	} {
		crd := partial(crdKind)
		crd.Name = name
		if got := isRelevantCRD().Create(event.CreateEvent{Object: crd}); got != want {
			t.Errorf("%s passes is %t, want %t", name, got, want)
		}
	}
}

func slice(name, placement string, clusters ...string) *clusterv1beta1.PlacementDecision {
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: "1",
		Labels: map[string]string{"cluster.open-cluster-management.io/placement": placement},
	}}
	for _, cluster := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	return d
}
