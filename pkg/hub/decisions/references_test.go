package decisions

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A profile that somebody has deleted, for instance with its namespace, is not referred to
// when the Placement is recreated before the profile.
func TestAForgottenProfileIsNotReferredTo(t *testing.T) {
	r := NewReferences(nil)
	placement, pair := types.NamespacedName{Namespace: "team", Name: "p"},
		types.NamespacedName{Namespace: "team", Name: "c"}
	r.Admit(t.Context(), pair)
	if !r.begin(placement, []string{"c"}) || !r.hasAdmitted() {
		t.Fatal("a profile that is whole may not be referred to")
	}
	r.seen(placement, []string{"c"})
	r.Forget(pair)
	if r.begin(placement, []string{"c"}) || r.hasAdmitted() {
		t.Error("a profile that is not there may be referred to")
	}
}

// A profile that was about to be deleted, and stays after all, keeps its references.
func TestAProfileThatStaysKeepsItsReferences(t *testing.T) {
	r := NewReferences(nil)
	pair := types.NamespacedName{Namespace: "team", Name: "c"}
	r.withdrawn.Insert(pair.Namespace, pair.Name)
	r.Keep(pair)
	if _, withdrawn := r.standing(pair); withdrawn || r.hasWithdrawn(pair.Namespace) {
		t.Error("its references are about to go")
	}
}
