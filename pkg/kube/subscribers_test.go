package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubscribersAreToldInOrder(t *testing.T) {
	var s Subscribers[string]
	s.Tell("nobody hears this")
	if s.Any() {
		t.Error("there is one at the start")
	}
	var told []string
	s.Subscribe(func(change string) {
		told = append(told, "first "+change)
		s.Subscribe(func(change string) { told = append(told, "late "+change) }) // it waits for nothing
	})
	s.Subscribe(func(change string) { told = append(told, "second "+change) })
	s.Tell("a")
	if diff := cmp.Diff([]string{"first a", "second a"}, told); diff != "" || !s.Any() {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	told = nil
	s.Tell("b")
	if diff := cmp.Diff([]string{"first b", "second b", "late b"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
