package rule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// grouped puts a slice into a decision group.
func grouped(index, name string, s *clusterv1beta1.PlacementDecision) *clusterv1beta1.PlacementDecision {
	s.Labels["cluster.open-cluster-management.io/decision-group-index"] = index
	s.Labels["cluster.open-cluster-management.io/decision-group-name"] = name
	return s
}

func TestDecideChoice(t *testing.T) {
	situated := func(change func(*ChoiceObservation)) ChoiceObservation {
		o := ChoiceObservation{
			Observation: situation(),
			Placement:   ocmtest.Publishing("p", 2),
			Decisions: []clusterv1beta1.PlacementDecision{
				*grouped("0", "canary", ocmtest.Slice("p-1", "p", "a", "")), *grouped("1", "", ocmtest.Slice("p-2", "p", "b", "a")),
			},
		}
		change(&o)
		return o
	}
	tests := map[string]struct {
		change     func(*ChoiceObservation)
		answer     Answer
		rests      []string
		clusters   map[string]Group
		incomplete string
	}{
		"decided": {
			change: func(*ChoiceObservation) {}, answer: Yes,
			clusters: map[string]Group{"a": {Name: "canary"}, "b": {Index: 1}},
		},
		"not scheduled": {
			change: func(o *ChoiceObservation) { o.Placement.Status = clusterv1beta1.PlacementStatus{}; o.Decisions = nil },
			answer: Yes, clusters: map[string]Group{}, incomplete: "has not been scheduled",
		},
		"slices are missing": {
			change: func(o *ChoiceObservation) { o.Decisions = o.Decisions[:1] },
			answer: Yes, clusters: map[string]Group{"a": {Name: "canary"}},
			incomplete: "selects another number of clusters than its decisions list",
		},
		"gone": {
			change: func(o *ChoiceObservation) { o.Placement = nil }, answer: No, rests: []string{PlacementCRD},
		},
		"gone, and may come back": {
			change: func(o *ChoiceObservation) { o.Placement, o.RestoringCRDs = nil, []string{PlacementCRD} }, answer: Unknown,
		},
		"being deleted": {
			change: func(o *ChoiceObservation) { o.Placement.DeletionTimestamp = &metav1.Time{} },
			answer: No, rests: []string{PlacementCRD},
		},
		"without the label": {
			change: func(o *ChoiceObservation) { o.Placement.Labels = nil }, answer: No,
		},
		"nothing is bound": {
			change: func(o *ChoiceObservation) { o.Bindings = nil }, answer: No, rests: []string{BindingCRD},
		},
		"the binding is unbound": {
			change: func(o *ChoiceObservation) {
				o.Bindings[0].Binding.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "False", "R", "")}
			},
			answer: No, rests: []string{BindingCRD, SetCRD},
		},
		"the binding does not publish": {
			change: func(o *ChoiceObservation) {
				o.Bindings[0].Binding.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
			},
			answer: No, rests: []string{BindingCRD},
		},
		"the binding has not been evaluated": {
			change: func(o *ChoiceObservation) { o.Bindings[0].Binding.Status.Conditions = nil }, answer: Unknown,
		},
		"bindings may come back": {
			change: func(o *ChoiceObservation) { o.Bindings, o.RestoringCRDs = nil, []string{BindingCRD} }, answer: Unknown,
		},
		"nothing is bound, and only sets may come back": {
			change: func(o *ChoiceObservation) { o.Bindings, o.RestoringCRDs = nil, []string{SetCRD} },
			answer: No, rests: []string{BindingCRD},
		},
		"the binding is unbound, and its set may come back": {
			change: func(o *ChoiceObservation) {
				o.RestoringCRDs = []string{SetCRD}
				o.Bindings[0].Binding.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "False", "R", "")}
			},
			answer: Unknown,
		},
		"an API is not served": {
			change: func(o *ChoiceObservation) { o.Unserved = []string{ClusterCRD} }, answer: Unknown,
		},
		"profiles are not served": {
			change: func(o *ChoiceObservation) { o.ProfileAPI = false }, answer: Unknown,
		},
		"the namespace has not been seen": {
			change: func(o *ChoiceObservation) { o.Namespace = nil }, answer: Unknown,
		},
		"the namespace is going": {
			change: func(o *ChoiceObservation) { o.Namespace.DeletionTimestamp = &metav1.Time{} }, answer: Unknown,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := ChoiceOf(situated(test.change))
			if c.Answer != test.answer || c.Incomplete != test.incomplete || (c.Why == "") != (c.Answer == Yes) {
				t.Errorf("answer %v (%s), incomplete %q", c.Answer, c.Why, c.Incomplete)
			}
			if diff := cmp.Diff(test.clusters, c.Clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.rests, c.Rests); diff != "" {
				t.Errorf("rests (-want +got):\n%s", diff)
			}
		})
	}
}
