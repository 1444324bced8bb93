package rule

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// factsOf are the facts that an observation of cluster "c" rests on.
func factsOf(o Observation) Facts {
	f := Facts{
		Profile: o.Profile, Namespace: o.Namespace, Cluster: o.Cluster, Addon: o.Addon,
		ExclusiveSetsOnly: o.ExclusiveSetsOnly,
	}
	for _, b := range o.Bindings {
		f.Bindings = append(f.Bindings, Binding{Binding: b.Binding, Set: b.Set})
	}
	for _, p := range o.Placements {
		placement := Placement{placement: p.Placement, clusters: sets.New[string](), summary: p.Summary}
		if p.Decides {
			placement.clusters.Insert("c")
		}
		f.Placements = append(f.Placements, placement)
	}
	return f
}

// allOf is Yes if every step is, No if one is, and else Unknown.
func allOf(steps []Step) Answer {
	answer := Yes
	for _, step := range steps {
		if step.Answer == No {
			return No
		}
		if step.Answer == Unknown {
			answer = Unknown
		}
	}
	return answer
}

func TestStepsNameMissingAndHiddenKinds(t *testing.T) {
	hide := func(change func(*Hidden)) func(*Facts) { return func(f *Facts) { change(&f.Hidden) } }
	tests := map[string]struct {
		o       Observation
		change  func(*Facts)
		answer  Answer
		why     string
		steps   string // y: yes, n: no, u: unknown, h: hidden, -: unused; in order
		binding string
	}{
		"published": {o: situation(), answer: Yes, steps: "yyyy-", binding: "s"},
		"published by a Placement": {
			o: situation(placed(chooser("p", true, 1))), answer: Yes, steps: "yyyyy", binding: "s",
		},
		"one set is bound, another has the cluster: the latter's binding is what is missing": {
			o: situation(func(o *Observation) {
				other := bound("other", ocmtest.ExclusiveSet("other"))
				o.Bindings[0].Binding.Status.Conditions[0].Status = metav1.ConditionFalse
				o.Bindings = append(o.Bindings, other)
			}),
			answer: No, why: "is in no ManagedClusterSet that is bound and published here", steps: "yyny-", binding: "s",
		},
		"a set is bound that does not have the cluster": {
			o:      situation(withBinding(func(b *Binding) { b.Set = ocmtest.ExclusiveSet("other") })),
			answer: No, why: "is in no ManagedClusterSet that is bound and published here", steps: "yyyn-", binding: "s",
		},
		"a set that may not publish is bound, and one that does not have the cluster": {
			o: situation(exclusiveOnly, func(o *Observation) {
				o.Bindings = []Binding{bound("a", ocmtest.ExclusiveSet("a")), bound("global", ocmtest.LabelSet("global", all))}
			}),
			answer: No, why: notExclusive("global"), steps: "yyyn-", binding: "global",
		},
		"a set that may not publish is bound, and one that may": {
			o: situation(exclusiveOnly, func(o *Observation) {
				o.Bindings = append([]Binding{bound("global", ocmtest.LabelSet("global", all))}, o.Bindings...)
			}),
			answer: Yes, steps: "yyyy-", binding: "s",
		},
		"no binding": {
			o:      situation(func(o *Observation) { o.Bindings = nil }),
			answer: No, why: "is in no ManagedClusterSet that is bound and published here", steps: "yynn-",
		},
		"the tenant of one namespace: nothing of the hub is visible, and nothing speaks against it": {
			o: situation(func(o *Observation) { o.Cluster, o.Addon, o.Namespace, o.Bindings[0].Set = nil, nil, nil, nil }),
			change: hide(func(h *Hidden) {
				*h = Hidden{Clusters: true, Addons: true, Sets: true, Namespaces: true}
			}),
			answer: Unknown, why: "is not known to you: you may not read ManagedClusterAddOns", steps: "hhyhh", binding: "s",
		},
		"the tenant of one namespace, whose Placement does not choose the cluster: certain": {
			o: situation(placed(chooser("p", false, 3)), func(o *Observation) {
				o.Cluster, o.Addon, o.Namespace, o.Bindings[0].Set = nil, nil, nil, nil
			}),
			change: hide(func(h *Hidden) {
				*h = Hidden{Clusters: true, Addons: true, Sets: true, Namespaces: true}
			}),
			answer: No, why: "is not chosen by a Placement labeled inventory.open-cluster-management.io/publish=true",
			steps: "hhyhn", binding: "s",
		},
		"decisions are hidden": {
			o:      situation(placed(chooser("p", false, 3))),
			change: hide(func(h *Hidden) { h.Decisions = true }),
			answer: Unknown, why: "is not known to you: you may not read PlacementDecisions", steps: "yyyyh", binding: "s",
		},
		"bindings are hidden": {
			o:      situation(func(o *Observation) { o.Bindings = nil }),
			change: hide(func(h *Hidden) { h.Bindings = true }),
			answer: Unknown, why: "is not known to you: you may not read ManagedClusterSetBindings", steps: "yyhh-",
		},
		"a hidden kind does not hide what is known of another": {
			o:      situation(func(o *Observation) { o.Addon = nil }),
			change: hide(func(h *Hidden) { h.Sets = true }),
			answer: No, why: "does not have the addon cluster-inventory", steps: "nyyy-", binding: "s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := factsOf(test.o)
			if test.change != nil {
				test.change(&f)
			}
			got, steps := Explain("c", f)
			if got.Answer != test.answer || got.Why != test.why {
				t.Errorf("answer %d because it %q, want %d because it %q", got.Answer, got.Why, test.answer, test.why)
			}
			var letters strings.Builder
			for _, step := range steps {
				letters.WriteString(letterOf(step))
			}
			if diff := cmp.Diff(test.steps, letters.String()); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			binding := ""
			if about := steps[2].Binding; about != nil {
				binding = about.Binding.Name
			}
			if binding != test.binding {
				t.Errorf("the steps are about binding %q, want %q", binding, test.binding)
			}
		})
	}
}

func letterOf(step Step) string {
	switch {
	case step.Hidden:
		return "h"
	case step.Unused:
		return "-"
	default:
		return []string{"u", "n", "y"}[step.Answer]
	}
}

func TestNewPlacementsReturnsPublishingOnesWithTheirDecisions(t *testing.T) {
	placement := func(namespace, name, publish string) *clusterv1beta1.Placement {
		return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"inventory.open-cluster-management.io/publish": publish},
		}}
	}
	elsewhere := ocmtest.Slice("z-1", "z", "foreign")
	elsewhere.Namespace = "other"
	got := NewPlacements(
		[]*clusterv1beta1.Placement{placement("ns", "z", "true"),
			placement("ns", "a", "true"), placement("ns", "silent", "no")},
		[]clusterv1beta1.PlacementDecision{
			*ocmtest.Slice("z-1", "z", "one", "two"), *ocmtest.Slice("z-2", "z", "two", "three"), *ocmtest.Slice("a-1", "a"),
			*ocmtest.Slice("silent-1", "silent", "four"), *elsewhere,
		})
	names := map[string][]string{}
	for _, p := range got {
		names[p.Name()] = slices.Sorted(slices.Values(p.Clusters()))
	}
	if diff := cmp.Diff(map[string][]string{"a": nil, "z": {"one", "three", "two"}}, names); diff != "" {
		t.Errorf("Placements and their clusters (-want +got):\n%s", diff)
	}
	if got[0].Name() != "a" || got[1].summary.decisions != 3 {
		t.Errorf("not sorted, or not counted once: %+v", got)
	}
}
