package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// situation returns a pair that is to be published, changed as given.
func situation(changes ...func(*observed)) observed {
	o := observed{
		profileAPI: true,
		namespace:  &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "s", "env": "prod"}},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		addon:    addon("c"),
		bindings: []observedBinding{bound("s", exclusiveSet("s"))},
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func bound(name string, set *clusterv1beta2.ManagedClusterSet) observedBinding {
	return observedBinding{
		binding: &clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: name},
			Status:     clusterv1beta2.ManagedClusterSetBindingStatus{Conditions: []metav1.Condition{condition("Bound", "True", "R", "")}},
		},
		set: set,
	}
}

func withBinding(change func(*observedBinding)) func(*observed) {
	return func(o *observed) { change(&o.bindings[0]) }
}

func exclusiveSet(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: "ExclusiveClusterSetLabel"}},
	}
}

func labelSet(name string, selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: "LabelSelector", LabelSelector: selector}},
	}
}

var invalidSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Sometimes"}}}

// chooser is a publishing Placement, scheduled for n clusters in one slice.
func chooser(name string, decides bool, n int, changes ...func(*observedPlacement)) observedPlacement {
	p := observedPlacement{
		placement: &clusterv1beta1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"}},
			Status: clusterv1beta1.PlacementStatus{
				NumberOfSelectedClusters: int32(n),
				Conditions:               []metav1.Condition{condition("PlacementSatisfied", "True", "R", "")},
			},
		},
		decides: decides, decisions: n, slices: 1, newest: "5",
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func placed(placements ...observedPlacement) func(*observed) {
	return func(o *observed) { o.placements = placements }
}

func requiring(o *observed) {
	o.namespace.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
}

func TestSelectPair(t *testing.T) {
	now := metav1.Now()
	unscheduled := func(p *observedPlacement) { p.placement.Status.Conditions = nil }
	misconfigured := func(p *observedPlacement) {
		p.placement.Status.Conditions = append(p.placement.Status.Conditions, condition("PlacementMisconfigured", "True", "R", ""))
	}
	incomplete := func(p *observedPlacement) { p.decisions-- }
	const (
		notChosen = "is not chosen by a Placement labelled inventory.open-cluster-management.io/publish=true"
		unbound   = "is in no ManagedClusterSet that is bound and published here"
	)
	s := []string{"s"}

	tests := map[string]struct {
		o    observed
		want selection
	}{
		"bound, selected, in the inventory: published": {
			o: situation(), want: selection{answer: Yes, bindings: s, member: true},
		},

		// 1: the inventory
		"no ManagedCluster: withheld": {
			o:    situation(func(o *observed) { o.cluster = nil }),
			want: selection{answer: No, why: "is no ManagedCluster"},
		},
		"cluster being deleted: withheld": {
			o:    situation(func(o *observed) { o.cluster.DeletionTimestamp = &now }),
			want: selection{answer: No, why: "is being detached from the hub", bindings: s, member: true},
		},
		"cluster not accepted: withheld": {
			o:    situation(func(o *observed) { o.cluster.Spec.HubAcceptsClient = false }),
			want: selection{answer: No, why: "is not accepted by the hub (spec.hubAcceptsClient)", bindings: s, member: true},
		},
		"no addon: withheld": {
			o:    situation(func(o *observed) { o.addon = nil }),
			want: selection{answer: No, why: "does not have the addon cluster-inventory", bindings: s, member: true},
		},
		"addon being deleted: withheld": {
			o:    situation(func(o *observed) { o.addon.DeletionTimestamp = &now }),
			want: selection{answer: No, why: "is having the addon cluster-inventory removed", bindings: s, member: true},
		},
		"no addon and an unknown set: still a positive no": {
			o:    situation(func(o *observed) { o.addon = nil; o.bindings[0].set = nil }),
			want: selection{answer: No, why: "does not have the addon cluster-inventory", bindings: s},
		},

		// 2: bindings
		"no binding: withheld": {
			o:    situation(func(o *observed) { o.bindings = nil }),
			want: selection{answer: No, why: unbound},
		},
		"a binding found unbound: withheld": {
			o: situation(withBinding(func(b *observedBinding) {
				b.binding.Status.Conditions = []metav1.Condition{condition("Bound", "False", "R", "")}
			})),
			want: selection{answer: No, why: unbound, bindings: s, member: true},
		},
		"a binding without the condition: unknown": {
			o:    situation(withBinding(func(b *observedBinding) { b.binding.Status.Conditions = nil })),
			want: selection{answer: Unknown, why: `cannot be selected yet: ManagedClusterSetBinding "s" has not been found bound or unbound`, bindings: s, member: true},
		},
		"a binding of which it is unknown whether it is bound: unknown": {
			o: situation(withBinding(func(b *observedBinding) {
				b.binding.Status.Conditions = []metav1.Condition{condition("Bound", "Unknown", "R", "")}
			})),
			want: selection{answer: Unknown, why: `cannot be selected yet: ManagedClusterSetBinding "s" has not been found bound or unbound`, bindings: s, member: true},
		},
		"a binding without the condition to a set that does not select: withheld": {
			o: situation(withBinding(func(b *observedBinding) {
				b.binding.Status.Conditions, b.set = nil, exclusiveSet("other")
			})),
			want: selection{answer: No, why: unbound},
		},
		"a binding being deleted: withheld": {
			o:    situation(withBinding(func(b *observedBinding) { b.binding.DeletionTimestamp = &now })),
			want: selection{answer: No, why: unbound, bindings: s, member: true},
		},
		"a binding labelled not to publish: withheld, and nobody asks": {
			o: situation(withBinding(func(b *observedBinding) {
				b.binding.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
			})),
			want: selection{answer: No, why: unbound},
		},
		"another value of that label means nothing": {
			o: situation(withBinding(func(b *observedBinding) {
				b.binding.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "no"}
			})),
			want: selection{answer: Yes, bindings: s, member: true},
		},
		"the set is not there: unknown": {
			o:    situation(withBinding(func(b *observedBinding) { b.set = nil })),
			want: selection{answer: Unknown, why: `cannot be selected: ManagedClusterSet "s" is not there`, bindings: s},
		},
		"an invalid selector: unknown": {
			o:    situation(withBinding(func(b *observedBinding) { b.set = labelSet("s", invalidSelector) })),
			want: selection{answer: Unknown, why: `cannot be selected: the selector of ManagedClusterSet "s" is invalid: "Sometimes" is not a valid label selector operator`, bindings: s},
		},
		"an unknown selector type: unknown": {
			o: situation(withBinding(func(b *observedBinding) {
				b.set = exclusiveSet("s")
				b.set.Spec.ClusterSelector.SelectorType = "Oracle"
			})),
			want: selection{answer: Unknown, why: `cannot be selected: the selector of ManagedClusterSet "s" is invalid: selectorType is not right: Oracle`, bindings: s},
		},
		"a selector by labels that matches: published": {
			o: situation(withBinding(func(b *observedBinding) {
				b.set = labelSet("s", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}})
			})),
			want: selection{answer: Yes, bindings: s, member: true},
		},
		"the empty selector, as of the global set: published": {
			o:    situation(withBinding(func(b *observedBinding) { b.set = labelSet("global", &metav1.LabelSelector{}) })),
			want: selection{answer: Yes, bindings: s, member: true},
		},
		"no selector at all: withheld": {
			o:    situation(withBinding(func(b *observedBinding) { b.set = labelSet("s", nil) })),
			want: selection{answer: No, why: unbound},
		},
		"another set: withheld": {
			o:    situation(withBinding(func(b *observedBinding) { b.set = exclusiveSet("other") })),
			want: selection{answer: No, why: unbound},
		},
		"one binding says no, one yes: published": {
			o: situation(func(o *observed) {
				o.bindings = []observedBinding{bound("other", exclusiveSet("other")), bound("s", exclusiveSet("s"))}
			}),
			want: selection{answer: Yes, bindings: s, member: true},
		},
		"one binding is unknown, one says yes: published": {
			o: situation(func(o *observed) {
				o.bindings = []observedBinding{bound("gone", nil), bound("s", exclusiveSet("s"))}
			}),
			want: selection{answer: Yes, bindings: []string{"gone", "s"}, member: true},
		},
		"one binding is unknown, one says no: unknown": {
			o: situation(func(o *observed) {
				o.bindings = []observedBinding{bound("gone", nil), bound("other", exclusiveSet("other"))}
			}),
			want: selection{answer: Unknown, why: `cannot be selected: ManagedClusterSet "gone" is not there`, bindings: []string{"gone"}},
		},

		// 3: Placements
		"a Placement decides for it: published": {
			o: situation(placed(chooser("p", true, 3))), want: selection{answer: Yes, bindings: s, member: true},
		},
		"a Placement decides for others: withheld by the Placement alone": {
			o: situation(placed(chooser("p", false, 3))), want: selection{answer: No, why: notChosen, bindings: s, member: true, byPlacement: true},
		},
		"a Placement that selects nothing: withheld": {
			o: situation(placed(chooser("p", false, 0))), want: selection{answer: No, why: notChosen, bindings: s, member: true, byPlacement: true},
		},
		"one of two Placements decides for it: published": {
			o: situation(placed(chooser("p", false, 3), chooser("q", true, 1))), want: selection{answer: Yes, bindings: s, member: true},
		},
		"a Placement decides for it though its decisions are incomplete: published": {
			o: situation(placed(chooser("p", true, 3, incomplete))), want: selection{answer: Yes, bindings: s, member: true},
		},
		"a Placement not scheduled: unknown": {
			o:    situation(placed(chooser("p", false, 0, unscheduled))),
			want: selection{answer: Unknown, why: `is not decided for yet: Placement "p" has not been scheduled`, bindings: s, member: true, undecided: []string{"p"}},
		},
		"a misconfigured Placement: unknown": {
			o:    situation(placed(chooser("p", false, 0, misconfigured))),
			want: selection{answer: Unknown, why: `is not decided for yet: Placement "p" is misconfigured`, bindings: s, member: true, undecided: []string{"p"}},
		},
		"decisions that do not add up: unknown": {
			o:    situation(placed(chooser("p", false, 3, incomplete))),
			want: selection{answer: Unknown, why: `is not decided for yet: Placement "p" selects 3 clusters but its decisions do not add up to that`, bindings: s, member: true, undecided: []string{"p"}},
		},
		"one Placement says no, one is undecided: unknown": {
			o:    situation(placed(chooser("p", false, 3), chooser("q", false, 0, unscheduled))),
			want: selection{answer: Unknown, why: `is not decided for yet: Placement "q" has not been scheduled`, bindings: s, member: true, undecided: []string{"q"}},
		},
		"a Placement is undecided, but no binding selects: a positive no": {
			o:    situation(placed(chooser("p", false, 0, unscheduled)), withBinding(func(b *observedBinding) { b.set = exclusiveSet("other") })),
			want: selection{answer: No, why: unbound},
		},
		"an unknown set, but the Placement says no: a no that rests on the Placement alone": {
			o:    situation(placed(chooser("p", false, 3)), withBinding(func(b *observedBinding) { b.set = nil })),
			want: selection{answer: No, why: notChosen, bindings: s, byPlacement: true},
		},
		"a Placement is required and there is none: withheld at once": {
			o:    situation(requiring),
			want: selection{answer: No, why: "is withheld: the Namespace requires a Placement labelled inventory.open-cluster-management.io/publish=true and has none", bindings: s, member: true},
		},
		"a Placement is required and decides: published": {
			o: situation(requiring, placed(chooser("p", true, 1))), want: selection{answer: Yes, bindings: s, member: true},
		},
		"the Namespace has not been seen, so it is not known whether it requires a Placement": {
			o:    situation(func(o *observed) { o.namespace = nil }),
			want: selection{answer: Unknown, why: "cannot be published: the Namespace has not been seen yet", bindings: s, member: true},
		},

		// What the rule rests on
		"an API is not served: unknown, whatever the caches say": {
			o:    situation(func(o *observed) { o.unserved = []string{"a", "b"}; o.cluster = nil }),
			want: selection{answer: Unknown, why: "the hub does not serve a, b"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, selectPair(test.o), cmp.AllowUnexported(selection{})); diff != "" {
				t.Errorf("selection (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextStep(t *testing.T) {
	now := metav1.Now()
	profile := func(manager string, marked bool) *inventoryv1alpha1.ClusterProfile {
		p := &inventoryv1alpha1.ClusterProfile{}
		p.Spec.ClusterManager.Name = manager
		if marked {
			p.Labels = map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}
		}
		return p
	}
	const ours = "open-cluster-management"
	have := func(p *inventoryv1alpha1.ClusterProfile) func(*observed) { return func(o *observed) { o.profile = p } }
	going := func(o *observed) { o.profile.DeletionTimestamp = &now }
	terminating := func(o *observed) { o.namespace.DeletionTimestamp = &now }
	noAddon := func(o *observed) { o.addon = nil }

	tests := map[string]struct {
		o                 observed
		onYes, onNo, onUn step
	}{
		"no profile":                              {o: situation(), onYes: create, onNo: leave, onUn: leave},
		"no profile, the namespace is going":      {o: situation(terminating), onYes: leave, onNo: leave, onUn: leave},
		"our profile":                             {o: situation(have(profile(ours, true))), onYes: update, onNo: remove, onUn: update},
		"our profile, the cluster left":           {o: situation(have(profile(ours, true)), noAddon), onYes: update, onNo: remove, onUn: leave},
		"our profile, being deleted":              {o: situation(have(profile(ours, true)), going), onYes: leave, onNo: leave, onUn: leave},
		"our profile, the namespace is going":     {o: situation(have(profile(ours, true)), terminating), onYes: leave, onNo: leave, onUn: leave},
		"a profile of our manager's without mark": {o: situation(have(profile(ours, false))), onYes: update, onNo: leave, onUn: leave},
		"another manager's profile":               {o: situation(have(profile("gke", false))), onYes: leave, onNo: leave, onUn: leave},
		"another manager's profile with our mark": {o: situation(have(profile("gke", true))), onYes: leave, onNo: leave, onUn: leave},
		"a profile that names no manager at all":  {o: situation(have(profile("", true))), onYes: leave, onNo: leave, onUn: leave},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := []step{test.onYes, test.onNo, test.onUn}
			got := []step{nextStep(test.o, selection{answer: Yes}), nextStep(test.o, selection{answer: No}), nextStep(test.o, selection{answer: Unknown})}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("steps on yes, no, unknown (-want +got):\n%s", diff)
			}
		})
	}
}
