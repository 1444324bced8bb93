package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubscribersAreNotifiedInOrder(t *testing.T) {
	var s Subscribers[string]
	s.Notify("unheard")
	if s.Any() {
		t.Error("there is one at the start")
	}
	var notified []string
	s.Subscribe(func(change string) {
		notified = append(notified, "first "+change)
		s.Subscribe(func(change string) { notified = append(notified, "late "+change) }) // it waits for nothing
	})
	s.Subscribe(func(change string) { notified = append(notified, "second "+change) })
	s.Notify("a")
	if diff := cmp.Diff([]string{"first a", "second a"}, notified); diff != "" || !s.Any() {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
	notified = nil
	s.Notify("b")
	if diff := cmp.Diff([]string{"first b", "second b", "late b"}, notified); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
}
