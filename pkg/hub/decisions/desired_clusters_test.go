package decisions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestDesiredClusters(t *testing.T) {
	first, second := selection.Group{}, selection.Group{Index: 1}
	in := func(group selection.Group, clusters ...string) map[string]selection.Group {
		all := map[string]selection.Group{}
		for _, cluster := range clusters {
			all[cluster] = group
		}
		return all
	}
	yes := func(clusters map[string]selection.Group) selection.Choice {
		return selection.Choice{Result: selection.Result{Answer: selection.Yes}, Clusters: clusters}
	}
	incomplete := yes(in(first, "new"))
	incomplete.Incomplete = "is misconfigured"
	tests := map[string]struct {
		referred            map[string]selection.Group
		choice              selection.Choice
		left                []string
		admitted, withdrawn string
		want                map[string]selection.Group
	}{
		"chosen and whole":              {choice: yes(in(first, "c")), admitted: "c", want: in(first, "c")},
		"chosen and not whole":          {choice: yes(in(first, "c"))},
		"whole and not chosen":          {choice: yes(nil), admitted: "c"},
		"not whole any more":            {referred: in(first, "c"), choice: yes(in(first, "c")), want: in(first, "c")},
		"absent, for how long so far":   {referred: in(first, "c"), choice: yes(nil), want: in(first, "c")},
		"left":                          {referred: in(first, "c"), choice: yes(nil), left: []string{"c"}, admitted: "c"},
		"withdrawn":                     {referred: in(first, "c"), choice: yes(in(first, "c")), withdrawn: "c"},
		"withdrawn before it was added": {choice: yes(in(first, "c")), withdrawn: "c"},
		"in another group":              {referred: in(first, "c"), choice: yes(in(second, "c")), want: in(second, "c")},
		"the choice is unknown":         {referred: in(second, "c"), admitted: "c", want: in(second, "c")},
		"unknown, but withdrawn":        {referred: in(second, "c"), withdrawn: "c"},
		"incomplete: nothing is added or removed": {
			referred: in(first, "c"), choice: incomplete, admitted: "new", want: in(first, "c"),
		},
		"incomplete, but left": {referred: in(first, "c"), choice: incomplete, left: []string{"c"}, admitted: "new"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of := func(cluster string) selection.Answer {
				switch cluster {
				case test.withdrawn:
					return selection.No
				case test.admitted:
					return selection.Yes
				default:
					return selection.Unknown
				}
			}
			want := test.want
			if want == nil {
				want = map[string]selection.Group{}
			}
			if diff := cmp.Diff(want, desiredClusters(test.referred, test.choice, test.left, of)); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayBegin(t *testing.T) {
	yes := selection.Choice{Result: selection.Result{Answer: selection.Yes}}
	chosen, incomplete := yes, yes
	chosen.Clusters = map[string]selection.Group{"c": {}}
	incomplete.Incomplete = "has not been scheduled"
	tests := map[string]struct {
		choice   selection.Choice
		want     map[string]selection.Group
		admitted bool
		begins   bool
	}{
		"with the first profile":         {choice: chosen, want: chosen.Clusters, admitted: true, begins: true},
		"no profile is whole yet":        {choice: chosen, admitted: true},
		"nothing is chosen":              {choice: yes, admitted: true, begins: true},
		"nothing is published at all":    {choice: yes},
		"nothing has been decided":       {choice: incomplete, admitted: true},
		"it is unknown what is selected": {choice: selection.Choice{}, admitted: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mayBegin(test.choice, test.want, test.admitted); got != test.begins {
				t.Errorf("begins: %t", got)
			}
		})
	}
}
