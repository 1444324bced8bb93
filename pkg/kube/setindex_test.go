package kube

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetIndex(t *testing.T) {
	index := SetIndex[string, int]{}
	index.Insert("a", 1)
	index.Insert("a", 2)
	index.Insert("a", 2)
	index.Insert("b", 3)
	members := index.Members("a")
	slices.Sort(members)
	if diff := cmp.Diff([]int{1, 2}, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if index.Delete("a", 1) {
		t.Error("a still has a member")
	}
	if diff := cmp.Diff([]int{2}, index.Members("a")); diff != "" {
		t.Errorf("members after a deletion (-want +got):\n%s", diff)
	}
	if !index.Delete("a", 2) {
		t.Error("a has no member left")
	}
	if diff := cmp.Diff([]string{"b"}, index.Keys()); diff != "" {
		t.Errorf("keys, an empty set must take no memory (-want +got):\n%s", diff)
	}
	if !index.Delete("unknown", 1) {
		t.Error("an unknown key has no members")
	}
}
