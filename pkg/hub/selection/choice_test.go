package selection

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

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
	s := newScene(t, ocmtest.Publishing("p", 1), ocmtest.Slice("p-1", "p", "c"))
	s.leaves("a", "", time.Second)
	s.later(600 * time.Millisecond)
	s.leaves("ab", "", 400*time.Millisecond)
	s.later(400 * time.Millisecond)
	s.leaves("ab", "a", 600*time.Millisecond)
	s.leaves("b", "", 600*time.Millisecond)
	s.leaves("ab", "", 600*time.Millisecond) // a was there meanwhile
	s.later(time.Second)
	s.settling.Chosen(types.NamespacedName{Namespace: "ns", Name: "p"}, []string{"b"}) // an event said so
	s.leaves("ab", "a", time.Second)
	s.leaves("", "", 0)
	if len(s.settling.left) > 0 {
		t.Errorf("remembered: %v", s.settling.left)
	}
}

func TestNoClusterLeavesAnIncompleteChoice(t *testing.T) {
	p := ocmtest.Publishing("p", 2)
	s := newScene(t, p, ocmtest.Slice("p-1", "p", "c"))
	s.leaves("a", "", 0)
	s.later(time.Minute)
	s.leaves("a", "", 0)
	p.Status.NumberOfSelectedClusters = 1
	s.update(p)
	s.leaves("a", "", time.Second)
	s.later(time.Second)
	*s.live.missingCRD = rule.DecisionCRD
	s.leaves("a", "", 0)
	*s.live.missingCRD = ""
	s.leaves("a", "a", 0)
}

func TestAPlacementThatVanishesWithItsCRD(t *testing.T) {
	p := ocmtest.Publishing("p", 1)
	s := newScene(t, p, ocmtest.Slice("p-1", "p", "c"))
	choose := func(want rule.Answer) {
		t.Helper()
		choice, err := s.Choice(t.Context(), client.ObjectKeyFromObject(p))
		if err != nil || choice.Answer != want {
			t.Errorf("answer %v, %v; want %v", choice.Answer, err, want)
		}
	}
	choose(rule.Yes)
	s.leaves("", "", 0) // callers that ask for a choice ask this, too
	if err := s.cache.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	choose(rule.Unknown) // it may be about to be recreated
	s.later(10 * time.Second)
	*s.live.missingCRD = rule.PlacementCRD
	choose(rule.Unknown)
	*s.live.missingCRD = ""
	choose(rule.No)
}

func TestChoosing(t *testing.T) {
	hidden := ocmtest.Publishing("hidden", 1)
	hidden.Labels = nil
	s := newScene(t, ocmtest.Publishing("p", 1), ocmtest.Slice("p-1", "p", "c"), ocmtest.Publishing("q", 1),
		ocmtest.Slice("q-1", "q", "d"), hidden, ocmtest.Slice("hidden-1", "hidden", "c"))
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
