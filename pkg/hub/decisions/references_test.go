package decisions

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// A profile that somebody has deleted, for instance with its namespace, is not referred to
// when the Placement is recreated before the profile.
func TestAForgottenProfileIsNotReferredTo(t *testing.T) {
	r := NewReferences(nil)
	placement, pair := types.NamespacedName{Namespace: "team", Name: "p"},
		types.NamespacedName{Namespace: "team", Name: "c"}
	r.Allow(t.Context(), pair, selection.Yes)
	if !r.begin(placement, []string{"c"}) || !r.allowsAny() {
		t.Fatal("a profile that is whole may not be referred to")
	}
	r.seen(placement, []string{"c"})
	r.Allow(t.Context(), pair, selection.Unknown)
	if r.begin(placement, []string{"c"}) || r.allowsAny() {
		t.Error("a profile that is not there may be referred to")
	}
}

// A profile that was about to be deleted, and stays after all, keeps its references.
func TestAProfileThatStaysKeepsItsReferences(t *testing.T) {
	r := NewReferences(nil)
	pair := types.NamespacedName{Namespace: "team", Name: "c"}
	r.set(pair, selection.No)
	if !r.refusesAny(pair.Namespace) {
		t.Error("nothing is about to go")
	}
	r.Allow(t.Context(), pair, selection.Unknown)
	if r.of(pair) != selection.Unknown || r.refusesAny(pair.Namespace) {
		t.Error("its references are about to go")
	}
}
