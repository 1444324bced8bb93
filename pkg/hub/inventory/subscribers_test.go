package inventory

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// selects checks the rule's answer about the pair for others.
func (s *stepper) selects(want selection.Answer, why string, again time.Duration) {
	s.T.Helper()
	got, err := s.rule.Selected(s.T.Context(), s.pair, true)
	if err != nil {
		s.T.Fatal(err)
	}
	if got.Answer != want || !strings.Contains(got.Why, why) || got.Again != again {
		s.T.Errorf("selected: %+v, want answer %d, a reason with %q, again after %s", got, want, why, again)
	}
}

// TestSubscribersLearnWhatIsSelected: other subscribers of the rule learn of every change
// of its answer, and of nothing else.
func TestSubscribersLearnWhatIsSelected(t *testing.T) {
	s := newStepper(t, mapHub)
	var notified []types.NamespacedName
	s.rule.Subscribe(func(pair types.NamespacedName) { notified = append(notified, pair) })
	hears := func(what string, times int) {
		t.Helper()
		want := make([]types.NamespacedName, 0, times)
		for range times {
			want = append(want, s.pair)
		}
		if diff := cmp.Diff(want, append([]types.NamespacedName{}, notified...)); diff != "" {
			t.Errorf("%s: notified (-want +got):\n%s", what, diff)
		}
		notified = nil
	}

	s.selects(selection.Yes, "", 0)
	s.mustStep("POST clusterprofiles", "PATCH clusterprofiles/status")
	hears("selected", 1)
	s.settled()
	hears("the profile is there", 1)
	s.claims(ocmtest.Claim("x", "2"))
	s.mustStep("PATCH clusterprofiles/status")
	s.settled()
	hears("its content changed", 0)

	s.guard.blocked.Store(true)
	withdraw(s)
	s.selects(selection.No, "is in no ManagedClusterSet", 0)
	s.mustStep()
	hears("unbound while the guard keeps the profile", 1)
	s.guard.blocked.Store(false)
	s.mustStep("DELETE clusterprofiles")
	s.settled()
	hears("the profile went", 1)
	s.settled()
	hears("nothing more", 0)

	unbindUnknown(s)
	s.selects(selection.Unknown, "the condition Bound of ManagedClusterSetBinding", 0)
	s.mustStep()
	hears("unknown", 1)
}

// TestAbsenceDoesNotCountBeforeItLasted: when a Placement drops the cluster, others
// wait as long as the profile does before they withdraw anything.
func TestAbsenceDoesNotCountBeforeItLasted(t *testing.T) {
	s := newStepper(t, mapHub)
	placement, decision := s.Placement(s.ns, "p", s.c.Name)
	s.selects(selection.Yes, "", 0)
	s.Decide(placement, decision)
	s.selects(selection.Unknown, "is not chosen", time.Second)
	s.later(time.Second)
	s.selects(selection.No, "is not chosen", 0)
}
