package rule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// situation returns a pair that should be published, changed as given.
func situation(changes ...func(*Observation)) Observation {
	o := Observation{
		ProfileAPI: true,
		Namespace:  &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		Cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c",
				Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "s", "env": "prod"}},
			Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		Addon:    ocmtest.Addon("c"),
		Bindings: []Binding{bound("s", ocmtest.ExclusiveSet("s"))},
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func bound(name string, set *clusterv1beta2.ManagedClusterSet) Binding {
	return Binding{Binding: ocmtest.Binding("", name), Set: set}
}

func withBinding(change func(*Binding)) func(*Observation) {
	return func(o *Observation) { change(&o.Bindings[0]) }
}

// chooser is a publishing Placement, scheduled for n clusters in one slice.
func chooser(name string, decides bool, n int, changes ...func(*ObservedPlacement)) ObservedPlacement {
	p := ObservedPlacement{
		Placement: ocmtest.Publishing(name, n),
		Decides:   decides, Summary: Summary{decisions: n, Slices: 1, versions: 5, layout: &layout{}},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func placed(placements ...ObservedPlacement) func(*Observation) {
	return func(o *Observation) { o.Placements = placements }
}

func requires(o *Observation) {
	o.Namespace.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
}

func exclusiveOnly(o *Observation) { o.ExclusiveSetsOnly = true }

// all is the selector of the set "global".
var all = &metav1.LabelSelector{}

func notExclusive(set string) string {
	return `is withheld: ManagedClusterSet "` + set + `" is not exclusive, and the manager publishes only through exclusive ones`
}

func TestDecide(t *testing.T) {
	now := metav1.Now()
	unscheduled := func(p *ObservedPlacement) { p.Placement.Status.Conditions = nil }
	misconfigured := func(p *ObservedPlacement) {
		p.Placement.Status.Conditions = append(p.Placement.Status.Conditions,
			ocmtest.Condition("PlacementMisconfigured", "True", "R", ""))
	}
	incomplete := func(p *ObservedPlacement) { p.Summary.decisions-- }
	const (
		notChosen = "is not chosen by a Placement labeled inventory.open-cluster-management.io/publish=true"
		unbound   = "is in no ManagedClusterSet that is bound and published here"
	)
	s := []string{"s"}

	tests := map[string]struct {
		o    Observation
		want Result
	}{
		"bound, selected, in the inventory: published": {
			o: situation(), want: Result{Answer: Yes, Bindings: s, Member: true},
		},

		// 1: the inventory
		"no ManagedCluster: withheld": {
			o:    situation(func(o *Observation) { o.Cluster = nil }),
			want: Result{Answer: No, Why: "is not a ManagedCluster"},
		},
		"cluster being deleted: withheld": {
			o:    situation(func(o *Observation) { o.Cluster.DeletionTimestamp = &now }),
			want: Result{Answer: No, Why: "is being detached from the hub", Bindings: s, Member: true, Going: true},
		},
		"cluster not accepted: withheld": {
			o:    situation(func(o *Observation) { o.Cluster.Spec.HubAcceptsClient = false }),
			want: Result{Answer: No, Why: "is not accepted by the hub (spec.hubAcceptsClient)", Bindings: s, Member: true},
		},
		"no addon: withheld": {
			o:    situation(func(o *Observation) { o.Addon = nil }),
			want: Result{ByAddon: true, Answer: No, Why: "does not have the addon cluster-inventory", Bindings: s, Member: true},
		},
		"addon being deleted: withheld": {
			o: situation(func(o *Observation) { o.Addon.DeletionTimestamp = &now }),
			want: Result{ByAddon: true, Answer: No, Why: "is losing the addon cluster-inventory",
				Bindings: s, Member: true, Going: true},
		},
		"no addon and an unknown set: still a positive no": {
			o:    situation(func(o *Observation) { o.Addon = nil; o.Bindings[0].Set = nil }),
			want: Result{ByAddon: true, Answer: No, Why: "does not have the addon cluster-inventory", Bindings: s},
		},

		// 2: bindings
		"no binding: withheld": {
			o:    situation(func(o *Observation) { o.Bindings = nil }),
			want: Result{Answer: No, Why: unbound},
		},
		"a binding found unbound: withheld": {
			o: situation(withBinding(func(b *Binding) {
				b.Binding.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "False", "R", "")}
			})),
			want: Result{Answer: No, Why: unbound, Bindings: s, Member: true},
		},
		"a binding without the condition: unknown": {
			o: situation(withBinding(func(b *Binding) { b.Binding.Status.Conditions = nil })),
			want: Result{Answer: Unknown,
				Why:      `cannot be selected yet: the condition Bound of ManagedClusterSetBinding "s" is unknown`,
				Bindings: s, Member: true},
		},
		"a binding of which it is unknown whether it is bound: unknown": {
			o: situation(withBinding(func(b *Binding) {
				b.Binding.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "Unknown", "R", "")}
			})),
			want: Result{Answer: Unknown,
				Why:      `cannot be selected yet: the condition Bound of ManagedClusterSetBinding "s" is unknown`,
				Bindings: s, Member: true},
		},
		"a binding without the condition to a set that does not select: withheld": {
			o: situation(withBinding(func(b *Binding) {
				b.Binding.Status.Conditions, b.Set = nil, ocmtest.ExclusiveSet("other")
			})),
			want: Result{Answer: No, Why: unbound},
		},
		"a binding being deleted: withheld": {
			o:    situation(withBinding(func(b *Binding) { b.Binding.DeletionTimestamp = &now })),
			want: Result{Answer: No, Why: unbound, Bindings: s, Member: true},
		},
		"a binding labeled not to publish: withheld and not expected": {
			o: situation(withBinding(func(b *Binding) {
				b.Binding.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
			})),
			want: Result{Answer: No, Why: unbound},
		},
		"another value of that label means nothing": {
			o: situation(withBinding(func(b *Binding) {
				b.Binding.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "no"}
			})),
			want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"the set is not there: unknown": {
			o:    situation(withBinding(func(b *Binding) { b.Set = nil })),
			want: Result{Answer: Unknown, Why: `cannot be selected: ManagedClusterSet "s" does not exist`, Bindings: s},
		},
		"an invalid selector: unknown": {
			o:    situation(withBinding(func(b *Binding) { b.Set = ocmtest.LabelSet("s", ocmtest.InvalidSelector()) })),
			want: Result{Answer: Unknown, Why: `cannot be selected: the selector of ManagedClusterSet "s" is invalid: "Sometimes" is not a valid label selector operator`, Bindings: s},
		},
		"an unknown selector type: unknown": {
			o: situation(withBinding(func(b *Binding) {
				b.Set = ocmtest.ExclusiveSet("s")
				b.Set.Spec.ClusterSelector.SelectorType = "Oracle"
			})),
			want: Result{Answer: Unknown,
				Why:      `cannot be selected: the selector of ManagedClusterSet "s" is invalid: selectorType is not right: Oracle`,
				Bindings: s},
		},
		"a selector by labels that matches: published": {
			o: situation(withBinding(func(b *Binding) {
				b.Set = ocmtest.LabelSet("s", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}})
			})),
			want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"the empty selector, as of the global set: published": {
			o:    situation(withBinding(func(b *Binding) { b.Set = ocmtest.LabelSet("global", &metav1.LabelSelector{}) })),
			want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"no selector at all: withheld": {
			o:    situation(withBinding(func(b *Binding) { b.Set = ocmtest.LabelSet("s", nil) })),
			want: Result{Answer: No, Why: unbound},
		},
		"another set: withheld": {
			o:    situation(withBinding(func(b *Binding) { b.Set = ocmtest.ExclusiveSet("other") })),
			want: Result{Answer: No, Why: unbound},
		},
		"one binding says no, one yes: published": {
			o: situation(func(o *Observation) {
				o.Bindings = []Binding{bound("other", ocmtest.ExclusiveSet("other")), bound("s", ocmtest.ExclusiveSet("s"))}
			}),
			want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"one binding is unknown, one says yes: published": {
			o: situation(func(o *Observation) {
				o.Bindings = []Binding{bound("gone", nil), bound("s", ocmtest.ExclusiveSet("s"))}
			}),
			want: Result{Answer: Yes, Bindings: []string{"gone", "s"}, Member: true},
		},
		"one binding is unknown, one says no: unknown": {
			o: situation(func(o *Observation) {
				o.Bindings = []Binding{bound("gone", nil), bound("other", ocmtest.ExclusiveSet("other"))}
			}),
			want: Result{Answer: Unknown, Why: `cannot be selected: ManagedClusterSet "gone" does not exist`,
				Bindings: []string{"gone"}},
		},

		// Only exclusive sets publish.
		"exclusive sets only, and the set is exclusive: published": {
			o: situation(exclusiveOnly), want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"exclusive sets only, and the set's type is the default: published": {
			o: situation(exclusiveOnly, withBinding(func(b *Binding) {
				b.Set.Spec.ClusterSelector.SelectorType = ""
			})),
			want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"exclusive sets only, and labels select the cluster: withheld but expected": {
			o:    situation(exclusiveOnly, withBinding(func(b *Binding) { b.Set = ocmtest.LabelSet("global", all) })),
			want: Result{Answer: No, Why: notExclusive("global"), Bindings: s, Member: true, BySetType: true},
		},
		"exclusive sets only, and the selector by labels is invalid: withheld": {
			o: situation(exclusiveOnly, withBinding(func(b *Binding) {
				b.Set = ocmtest.LabelSet("s", ocmtest.InvalidSelector())
			})),
			want: Result{Answer: No, Why: notExclusive("s"), Bindings: s, BySetType: true},
		},
		"exclusive sets only, and the selector by labels does not match: as without a set": {
			o: situation(exclusiveOnly, withBinding(func(b *Binding) {
				b.Set = ocmtest.LabelSet("s", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}})
			})),
			want: Result{Answer: No, Why: unbound},
		},
		"exclusive sets only, and the binding to a set by labels has not been evaluated: withheld": {
			o: situation(exclusiveOnly, withBinding(func(b *Binding) {
				b.Set, b.Binding.Status.Conditions = ocmtest.LabelSet("s", all), nil
			})),
			want: Result{Answer: No, Why: notExclusive("s"), Bindings: s, Member: true, BySetType: true},
		},
		"exclusive sets only, and the set is not there: unknown": {
			o:    situation(exclusiveOnly, withBinding(func(b *Binding) { b.Set = nil })),
			want: Result{Answer: Unknown, Why: `cannot be selected: ManagedClusterSet "s" does not exist`, Bindings: s},
		},
		"exclusive sets only, one by labels and an exclusive one: published": {
			o: situation(exclusiveOnly, func(o *Observation) {
				o.Bindings = append([]Binding{bound("global", ocmtest.LabelSet("global", all))}, o.Bindings...)
			}),
			want: Result{Answer: Yes, Bindings: []string{"global", "s"}, Member: true},
		},
		"exclusive sets only, one by labels and one that is not there: unknown": {
			o: situation(exclusiveOnly, func(o *Observation) {
				o.Bindings = []Binding{bound("global", ocmtest.LabelSet("global", all)), bound("gone", nil)}
			}),
			want: Result{Answer: Unknown, Why: `cannot be selected: ManagedClusterSet "gone" does not exist`,
				Bindings: []string{"global", "gone"}, Member: true},
		},
		"exclusive sets only, and bindings may come back: unknown": {
			o: situation(exclusiveOnly, withBinding(func(b *Binding) { b.Set = ocmtest.LabelSet("global", all) }),
				func(o *Observation) { o.RestoringCRDs = []string{BindingCRD} }),
			want: Result{Answer: Unknown, Why: whyDoubtful(BindingCRD), Bindings: s, Member: true, Untrusted: true},
		},

		// 3: Placements
		"a Placement decides for it: published": {
			o: situation(placed(chooser("p", true, 3))), want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"a Placement decides for others: withheld by the Placement alone": {
			o:    situation(placed(chooser("p", false, 3))),
			want: Result{Answer: No, Why: notChosen, Bindings: s, Member: true, ByPlacement: true},
		},
		"a Placement that selects nothing: withheld": {
			o:    situation(placed(chooser("p", false, 0))),
			want: Result{Answer: No, Why: notChosen, Bindings: s, Member: true, ByPlacement: true},
		},
		"one of two Placements decides for it: published": {
			o:    situation(placed(chooser("p", false, 3), chooser("q", true, 1))),
			want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"a Placement decides for it though its decisions are incomplete: published": {
			o: situation(placed(chooser("p", true, 3, incomplete))), want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"a Placement not scheduled: unknown": {
			o: situation(placed(chooser("p", false, 0, unscheduled))),
			want: Result{Answer: Unknown, Why: `awaits a decision: Placement "p" has not been scheduled`,
				Bindings: s, Member: true, Undecided: []string{"p"}},
		},
		"a misconfigured Placement: unknown": {
			o: situation(placed(chooser("p", false, 0, misconfigured))),
			want: Result{Answer: Unknown, Why: `awaits a decision: Placement "p" is misconfigured`,
				Bindings: s, Member: true, Undecided: []string{"p"}},
		},
		"decisions that do not add up: unknown": {
			o: situation(placed(chooser("p", false, 3, incomplete))),
			want: Result{Answer: Unknown,
				Why:      `awaits a decision: Placement "p" selects another number of clusters than its decisions list`,
				Bindings: s, Member: true, Undecided: []string{"p"}},
		},
		"one Placement says no, one is Undecided: unknown": {
			o: situation(placed(chooser("p", false, 3), chooser("q", false, 0, unscheduled))),
			want: Result{Answer: Unknown, Why: `awaits a decision: Placement "q" has not been scheduled`,
				Bindings: s, Member: true, Undecided: []string{"q"}},
		},
		"a Placement is undecided, but no binding selects: a positive no": {
			o: situation(placed(chooser("p", false, 0, unscheduled)),
				withBinding(func(b *Binding) { b.Set = ocmtest.ExclusiveSet("other") })),
			want: Result{Answer: No, Why: unbound},
		},
		"an unknown set, but the Placement says no: a no that rests on the Placement alone": {
			o:    situation(placed(chooser("p", false, 3)), withBinding(func(b *Binding) { b.Set = nil })),
			want: Result{Answer: No, Why: notChosen, Bindings: s, ByPlacement: true},
		},
		"a Placement is required and there is none: withheld at once": {
			o:    situation(requires),
			want: Result{Answer: No, Why: "is withheld: the Namespace requires a Placement labeled inventory.open-cluster-management.io/publish=true and has none", Bindings: s, Member: true},
		},
		"a Placement is required and decides: published": {
			o: situation(requires, placed(chooser("p", true, 1))), want: Result{Answer: Yes, Bindings: s, Member: true},
		},
		"the Namespace has not been seen, so it is not known whether it requires a Placement": {
			o: situation(func(o *Observation) { o.Namespace = nil }),
			want: Result{Answer: Unknown, Why: "cannot be published: the Namespace has not been seen yet",
				Bindings: s, Member: true},
		},

		// What the rule rests on
		"an API is not served: unknown, regardless of the caches": {
			o:    situation(func(o *Observation) { o.Unserved = []string{"a", "b"}; o.Cluster = nil }),
			want: Result{Answer: Unknown, Why: "the hub does not serve a, b", Untrusted: true},
		},
		"an API is not served and a set cannot be read: unknown, and not to be trusted": {
			o:    situation(func(o *Observation) { o.Unserved = []string{"a"}; o.Bindings[0].Set = nil }),
			want: Result{Answer: Unknown, Why: "the hub does not serve a", Bindings: s, Untrusted: true},
		},
		"an API is not served, but no binding publishes: withheld at once": {
			o:    situation(func(o *Observation) { o.Unserved = []string{PlacementCRD}; o.Bindings = nil }),
			want: Result{Answer: No, Why: "is in no ManagedClusterSet that is bound and published here"},
		},
		"the addon may be restored, but no binding publishes: withheld at once": {
			o: situation(func(o *Observation) {
				o.RestoringCRDs, o.Addon, o.Bindings = []string{AddonCRD}, nil, nil
			}),
			want: Result{Answer: No, Why: "is in no ManagedClusterSet that is bound and published here"},
		},
		"bindings are not served: unknown": {
			o:    situation(func(o *Observation) { o.Unserved = []string{BindingCRD}; o.Bindings = nil }),
			want: Result{Answer: Unknown, Why: "the hub does not serve " + BindingCRD, Untrusted: true},
		},
		"the set is missing while others are restored: unknown, and not to be trusted": {
			o: situation(func(o *Observation) { o.RestoringCRDs = []string{SetCRD}; o.Bindings[0].Set = nil }),
			want: Result{Answer: Unknown, Why: `cannot be selected: ManagedClusterSet "s" does not exist`,
				Bindings: s, Untrusted: true},
		},
		"a Placement has not decided while others are restored: unknown, and not to be trusted": {
			o: situation(placed(chooser("p", false, 0, unscheduled)),
				func(o *Observation) { o.RestoringCRDs = []string{PlacementCRD} }),
			want: Result{Answer: Unknown, Why: `awaits a decision: Placement "p" has not been scheduled`,
				Bindings: s, Member: true, Undecided: []string{"p"}, Untrusted: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Pair(test.o), cmpopts.IgnoreFields(Result{}, "Rests")); diff != "" {
				t.Errorf("selection (-want +got):\n%s", diff)
			}
			if len(test.o.Unserved) > 0 || len(test.o.RestoringCRDs) > 0 || len(test.o.Lost) > 0 {
				return // known only to those who keep a cache
			}
			got, steps := Explain("c", factsOf(test.o))
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Result{}, "Rests")); diff != "" {
				t.Errorf("selection by facts (-want +got):\n%s", diff)
			}
			if answer := allOf(steps); answer != test.want.Answer {
				t.Errorf("the steps say %d, want %d: %+v", answer, test.want.Answer, steps)
			}
		})
	}
}

func TestMissingObjectsMayComeBack(t *testing.T) {
	const (
		clusters   = "managedclusters.cluster.open-cluster-management.io"
		sets       = "managedclustersets.cluster.open-cluster-management.io"
		bindings   = "managedclustersetbindings.cluster.open-cluster-management.io"
		placements = "placements.cluster.open-cluster-management.io"
		decisions  = "placementdecisions.cluster.open-cluster-management.io"
		addons     = "managedclusteraddons.addon.open-cluster-management.io"
	)
	lost := func(o *Observation) { o.Lost = []string{"gone"} }
	off := withBinding(func(b *Binding) {
		b.Binding.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
	})
	tests := map[string]struct {
		change func(*Observation)
		want   Answer
		rests  []string
	}{
		"published": {change: func(*Observation) {}, want: Yes},
		"no ManagedCluster": {change: func(o *Observation) { o.Cluster = nil },
			want: No, rests: []string{clusters}},
		"a ManagedCluster that is not accepted": {change: func(o *Observation) { o.Cluster.Spec.HubAcceptsClient = false },
			want: No, rests: []string{clusters}},
		"no addon": {change: func(o *Observation) { o.Addon = nil },
			want: No, rests: []string{clusters, addons}},
		"no binding": {change: func(o *Observation) { o.Bindings = nil }, want: No, rests: []string{bindings}},
		"no binding but one that does not publish": {change: off, want: No, rests: []string{bindings}},
		"no binding but one that is being deleted": {
			change: withBinding(func(b *Binding) { b.Binding.DeletionTimestamp = ptr.To(metav1.Now()) }),
			want:   No, rests: []string{bindings},
		},
		"no binding but of another set": {
			change: withBinding(func(b *Binding) { b.Set = ocmtest.ExclusiveSet("other") }),
			want:   No, rests: []string{bindings, sets, clusters},
		},
		"no binding but one that is not bound": {
			change: withBinding(func(b *Binding) {
				b.Binding.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "False", "R", "")}
			}),
			want: No, rests: []string{bindings, sets, clusters},
		},
		"no binding but of another set and one that does not publish": {
			change: func(o *Observation) {
				off(o)
				o.Bindings = append(o.Bindings, bound("other", ocmtest.ExclusiveSet("other")))
			},
			want: No, rests: []string{bindings, sets, clusters},
		},
		"not chosen by a Placement": {change: placed(chooser("p", false, 3)), want: No,
			rests: []string{placements, decisions, bindings, sets, clusters}},
		"a Placement is required":     {change: requires, want: No, rests: []string{placements}},
		"the last Placement has gone": {change: lost, want: Yes, rests: []string{placements}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Pair(situation(test.change))
			if got.Answer != test.want {
				t.Errorf("answer %d, want %d", got.Answer, test.want)
			}
			if diff := cmp.Diff(test.rests, got.Rests); diff != "" {
				t.Errorf("rests (-want +got):\n%s", diff)
			}
			for _, crd := range []string{clusters, sets, bindings, placements, decisions, addons} {
				want := test.want
				if want == No && slices.Contains(test.rests, crd) {
					want = Unknown
				}
				// Without Placements all clusters are published, so it must be certain that
				// there are none.
				if want == Yes && crd == placements {
					want = Unknown
				}
				restoring := situation(test.change, func(o *Observation) { o.RestoringCRDs = []string{crd} })
				got := Pair(restoring)
				if got.Answer != want {
					t.Errorf("with %s recreated: answer %d, want %d", crd, got.Answer, want)
				}
				if got.Untrusted != (got.Answer == Unknown) {
					t.Errorf("with %s recreated: answer %d, untrusted is %t", crd, got.Answer, got.Untrusted)
				}
				if got.Answer == Unknown && !strings.Contains(got.Why, crd) {
					t.Errorf("the reason does not name %s: %s", crd, got.Why)
				}
			}
		})
	}
	for name, going := range map[string]struct {
		change func(*Observation)
		crds   []string
	}{
		"a cluster that is being detached is withdrawn at once": {crds: []string{clusters}, change: func(o *Observation) {
			o.Cluster.DeletionTimestamp = ptr.To(metav1.Now())
		}},
		"an addon that is being removed is withdrawn at once, unless the CRD of clusters is": {
			crds: []string{clusters, addons}, change: func(o *Observation) {
				o.Addon.DeletionTimestamp = ptr.To(metav1.Now())
			}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Pair(situation(going.change, func(o *Observation) { o.RestoringCRDs = []string{clusters, addons} }))
			if diff := cmp.Diff(going.crds, got.Rests); got.Answer != No || !got.Going || diff != "" {
				t.Errorf("answer %d, going %t, rests (-want +got):\n%s", got.Answer, got.Going, diff)
			}
		})
	}
	for name, change := range map[string]func(*Observation){
		"an addon is being removed with its cluster, which may come back": func(o *Observation) { o.Cluster = nil },
		"an addon is being removed, and its cluster has registered again": func(o *Observation) {
			o.Cluster.Spec.HubAcceptsClient = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := situation(change, func(o *Observation) {
				o.Addon.DeletionTimestamp, o.RestoringCRDs = ptr.To(metav1.Now()), []string{clusters}
			})
			if got := Pair(o); got.Answer != Unknown || !got.Untrusted {
				t.Errorf("answer %d, untrusted %t, want an untrusted Unknown", got.Answer, got.Untrusted)
			}
		})
	}
	t.Run("a Placement that is there counts", func(t *testing.T) {
		o := situation(placed(chooser("p", true, 3)), func(o *Observation) { o.RestoringCRDs = []string{placements} })
		if got := Pair(o); got.Answer != Yes {
			t.Errorf("answer %d, want Yes", got.Answer)
		}
	})
}

// A tenant may create thousands of Placements, and every pair keeps the answer.
func TestAnAnswerExplainsOnlyAFewPlacements(t *testing.T) {
	var placements []ObservedPlacement
	for n := range 2000 {
		placements = append(placements, chooser(fmt.Sprintf("p%04d", n), false, 0, func(p *ObservedPlacement) {
			p.Placement.Status.Conditions = nil
		}))
	}
	answer, why, undecided := placementsAnswer(situation(placed(placements...)))
	if answer != Unknown || len(undecided) != len(placements) {
		t.Errorf("answer %v, %d undecided", answer, len(undecided))
	}
	const want = `awaits a decision: Placement "p0000" has not been scheduled; Placement "p0001" has not been scheduled; ` +
		`Placement "p0002" has not been scheduled; Placement "p0003" has not been scheduled; ` +
		`Placement "p0004" has not been scheduled; and 1995 more`
	if why != want {
		t.Errorf("why: %.500s", why)
	}
}

func TestInInventory(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		o    Observation
		want bool
	}{
		"a cluster with the addon": {o: situation(), want: true},
		"in any state of the namespace": {o: situation(func(o *Observation) { o.Namespace, o.Bindings = nil, nil }),
			want: true},
		"without the addon": {o: situation(func(o *Observation) { o.Addon = nil })},
		"on its way out":    {o: situation(func(o *Observation) { o.Cluster.DeletionTimestamp = &now })},
		"no cluster":        {o: situation(func(o *Observation) { o.Cluster = (*clusterv1.ManagedCluster)(nil) })},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.o.InInventory(); got != test.want {
				t.Errorf("in the inventory is %t, want %t", got, test.want)
			}
		})
	}
}
