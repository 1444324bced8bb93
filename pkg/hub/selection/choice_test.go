package selection

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	situated := func(change func(*choiceObservation)) choiceObservation {
		o := choiceObservation{
			Observation: situation(),
			placement:   chooser("p", false, 2).placement,
			decisions: []clusterv1beta1.PlacementDecision{
				*grouped("0", "canary", slice("p-1", "p", "a", "")), *grouped("1", "", slice("p-2", "p", "b", "a")),
			},
		}
		change(&o)
		return o
	}
	tests := map[string]struct {
		change     func(*choiceObservation)
		answer     Answer
		rests      []string
		clusters   map[string]Group
		incomplete string
	}{
		"decided": {
			change: func(*choiceObservation) {}, answer: Yes,
			clusters: map[string]Group{"a": {Name: "canary"}, "b": {Index: 1}},
		},
		"not scheduled": {
			change: func(o *choiceObservation) { o.placement.Status = clusterv1beta1.PlacementStatus{}; o.decisions = nil },
			answer: Yes, clusters: map[string]Group{}, incomplete: "has not been scheduled",
		},
		"slices are missing": {
			change: func(o *choiceObservation) { o.decisions = o.decisions[:1] },
			answer: Yes, clusters: map[string]Group{"a": {Name: "canary"}},
			incomplete: "selects 2 clusters, but its decisions list another number",
		},
		"gone": {
			change: func(o *choiceObservation) { o.placement = nil }, answer: No, rests: []string{placementCRD},
		},
		"gone, and may come back": {
			change: func(o *choiceObservation) { o.placement, o.restoring = nil, []string{placementCRD} }, answer: Unknown,
		},
		"being deleted": {
			change: func(o *choiceObservation) { o.placement.DeletionTimestamp = &metav1.Time{} },
			answer: No, rests: []string{placementCRD},
		},
		"without the label": {
			change: func(o *choiceObservation) { o.placement.Labels = nil }, answer: No,
		},
		"nothing is bound": {
			change: func(o *choiceObservation) { o.bindings = nil }, answer: No, rests: []string{bindingCRD},
		},
		"the binding is unbound": {
			change: func(o *choiceObservation) {
				o.bindings[0].binding.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "False", "R", "")}
			},
			answer: No, rests: []string{bindingCRD, setCRD},
		},
		"the binding does not publish": {
			change: func(o *choiceObservation) {
				o.bindings[0].binding.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
			},
			answer: No, rests: []string{bindingCRD},
		},
		"the binding has not been judged": {
			change: func(o *choiceObservation) { o.bindings[0].binding.Status.Conditions = nil }, answer: Unknown,
		},
		"bindings may come back": {
			change: func(o *choiceObservation) { o.bindings, o.restoring = nil, []string{bindingCRD} }, answer: Unknown,
		},
		"nothing is bound, and only sets may come back": {
			change: func(o *choiceObservation) { o.bindings, o.restoring = nil, []string{setCRD} },
			answer: No, rests: []string{bindingCRD},
		},
		"the binding is unbound, and its set may come back": {
			change: func(o *choiceObservation) {
				o.restoring = []string{setCRD}
				o.bindings[0].binding.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", "False", "R", "")}
			},
			answer: Unknown,
		},
		"an API is not served": {
			change: func(o *choiceObservation) { o.Unserved = []string{clusterCRD} }, answer: Unknown,
		},
		"profiles are not served": {
			change: func(o *choiceObservation) { o.ProfileAPI = false }, answer: Unknown,
		},
		"the namespace has not been seen": {
			change: func(o *choiceObservation) { o.Namespace = nil }, answer: Unknown,
		},
		"the namespace is going": {
			change: func(o *choiceObservation) { o.Namespace.DeletionTimestamp = &metav1.Time{} }, answer: Unknown,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := decideChoice(situated(test.change))
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

// leaves compares which of some clusters have left, and when to ask again.
func (s *scene) leaves(clusters string, want string, again time.Duration) {
	s.t.Helper()
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	choice, err := s.Choice(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	var absent []string
	for _, cluster := range clusters {
		absent = append(absent, string(cluster))
	}
	left, wait, err := s.Leaving(s.t.Context(), key, choice, absent)
	if err != nil {
		s.t.Fatal(err)
	}
	got := ""
	for _, cluster := range left {
		got += cluster
	}
	if got != want || wait != again {
		s.t.Errorf("left: %q, again in %s; want %q, %s", got, wait, want, again)
	}
}

func TestLeaving(t *testing.T) {
	s := newScene(t, chooser("p", false, 1).placement, slice("p-1", "p", "c"))
	s.leaves("a", "", time.Second)
	s.later(600 * time.Millisecond)
	s.leaves("ab", "", 400*time.Millisecond)
	s.later(400 * time.Millisecond)
	s.leaves("ab", "a", 600*time.Millisecond)
	s.leaves("b", "", 600*time.Millisecond)
	s.leaves("ab", "", 600*time.Millisecond) // a was there meanwhile
	s.later(time.Second)
	s.settling.chosen(types.NamespacedName{Namespace: "ns", Name: "p"}, []string{"b"}) // an event told
	s.leaves("ab", "a", time.Second)
	s.leaves("", "", 0)
	if len(s.settling.left) > 0 {
		t.Errorf("remembered: %v", s.settling.left)
	}
}

func TestNobodyLeavesAnIncompleteChoice(t *testing.T) {
	p := chooser("p", false, 2).placement
	s := newScene(t, p, slice("p-1", "p", "c"))
	s.leaves("a", "", 0)
	s.later(time.Minute)
	s.leaves("a", "", 0)
	p.Status.NumberOfSelectedClusters = 1
	s.update(p)
	s.leaves("a", "", time.Second)
	s.later(time.Second)
	*s.live.missingCRD = decisionCRD
	s.leaves("a", "", 0)
	*s.live.missingCRD = ""
	s.leaves("a", "a", 0)
}

func TestAPlacementThatVanishesWithItsCRD(t *testing.T) {
	p := chooser("p", false, 1).placement
	s := newScene(t, p, slice("p-1", "p", "c"))
	choose := func(want Answer) {
		t.Helper()
		choice, err := s.Choice(t.Context(), client.ObjectKeyFromObject(p))
		if err != nil || choice.Answer != want {
			t.Errorf("answer %v, %v; want %v", choice.Answer, err, want)
		}
	}
	choose(Yes)
	s.leaves("", "", 0) // whoever asks for a choice asks this, too
	if err := s.cache.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	choose(Unknown) // it may be about to be recreated
	s.later(10 * time.Second)
	*s.live.missingCRD = placementCRD
	choose(Unknown)
	*s.live.missingCRD = ""
	choose(No)
}

func TestChoosing(t *testing.T) {
	hidden := chooser("hidden", false, 1).placement
	hidden.Labels = nil
	s := newScene(t, chooser("p", false, 1).placement, slice("p-1", "p", "c"), chooser("q", false, 1).placement,
		slice("q-1", "q", "d"), hidden, slice("hidden-1", "hidden", "c"))
	found, err := s.Choosing(t.Context(), s.pair)
	if err != nil || !slices.Equal(found, []types.NamespacedName{{Namespace: "ns", Name: "p"}}) {
		t.Errorf("choosing: %v, %v", found, err)
	}
	if found, err := s.Publishing(t.Context(), "ns"); err != nil || len(found) != 2 {
		t.Errorf("publishing: %v, %v", found, err)
	}
	if found, err := s.Publishing(t.Context(), ""); err != nil || len(found) != 2 {
		t.Errorf("publishing anywhere: %v, %v", found, err)
	}
}
