package credentials

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var (
	anAccount = types.NamespacedName{Namespace: "cluster1", Name: "reader"}
	midnight  = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
)

func found(content string) finding {
	f := finding{reference: reference{name: "reader", refreshed: midnight}}
	f.content[0] = content[0]
	return f
}

func TestAFreshTokenIsReadTwiceWhateverElseReadsIt(t *testing.T) {
	s := newSources(checkEvery)
	first := s.record(anAccount, found("a"), midnight)
	if want := midnight.Add(secondLook); !first.next.Equal(want) {
		t.Fatalf("the second look is at %s, want %s", first.next, want)
	}
	again := s.record(anAccount, found("a"), midnight.Add(secondLook/2))
	if !again.next.Equal(first.next) {
		t.Errorf("a read in between put the second look off to %s", again.next)
	}
	second := s.record(anAccount, found("a"), first.next)
	if wait := second.next.Sub(first.next); wait < checkEvery {
		t.Errorf("after the second look comes another after %s", wait)
	}
}

func TestAMissingTokenCountsUntilItHasBeenMissingForAWhile(t *testing.T) {
	s := newSources(checkEvery)
	s.record(anAccount, found("a"), midnight)
	gone := found("a")
	gone.content, gone.problem = digest{}, "its Secret is not there"
	began := midnight.Add(time.Minute)
	for _, after := range []time.Duration{0, missingLook / 2, missingLook - 1} {
		got := s.missing(anAccount, gone, began.Add(after))
		if got.problem != "" || !got.next.Equal(began.Add(missingLook)) {
			t.Errorf("after %s: %+v", after, got)
		}
	}
	if got := s.missing(anAccount, gone, began.Add(missingLook)); got.problem != gone.problem {
		t.Errorf("in the end: %+v", got)
	}

	// It is back, and goes again: that is another while.
	s.record(anAccount, found("b"), began.Add(time.Minute))
	if got := s.missing(anAccount, gone, began.Add(time.Hour)); got.problem != "" {
		t.Errorf("the second time: %+v", got)
	}
}
