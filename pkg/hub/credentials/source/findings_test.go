package source

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
)

var (
	anAccount = types.NamespacedName{Namespace: "cluster1", Name: "reader"}
	midnight  = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
)

func found(content string) Finding {
	f := Finding{reference: Reference{name: "reader", refreshed: midnight}}
	f.Digest[0] = content[0]
	return f
}

func TestNewTokenIsReadTwice(t *testing.T) {
	s := &findings{every: CheckEvery}
	first := s.record(anAccount, found("a"), midnight)
	if want := midnight.Add(secondLook); !first.Next.Equal(want) {
		t.Fatalf("the second look is at %s, want %s", first.Next, want)
	}
	again := s.record(anAccount, found("a"), midnight.Add(secondLook/2))
	if !again.Next.Equal(first.Next) {
		t.Errorf("a read in between put the second look off to %s", again.Next)
	}
	second := s.record(anAccount, found("a"), first.Next)
	if wait := second.Next.Sub(first.Next); wait < CheckEvery {
		t.Errorf("after the second look comes another after %s", wait)
	}
}

func TestNewTokenIsReadTwiceThoughAClockIsWrong(t *testing.T) {
	for _, now := range []time.Time{midnight.Add(-time.Hour), midnight.Add(time.Hour)} {
		s := &findings{every: CheckEvery}
		if f := s.record(anAccount, found("a"), now); f.Next.Sub(now) < CheckEvery {
			t.Errorf("a manager that starts takes a token for new that is not, and reads it again at %s", f.Next)
		}
		now = now.Add(30 * time.Second)
		another := found("b")
		another.reference.refreshed = midnight.Add(30 * time.Second)
		if f := s.record(anAccount, another, now); !f.Next.Equal(now.Add(secondLook)) {
			t.Errorf("the second look at another token is at %s, want %s", f.Next, now.Add(secondLook))
		}
	}
}

func TestMissingTokenCountsUntilItsAbsenceLasted(t *testing.T) {
	s := &findings{every: CheckEvery}
	s.record(anAccount, found("a"), midnight)
	gone := found("a")
	gone.Digest, gone.Problem = bearer.Digest{}, "its Secret is not there"
	began := midnight.Add(time.Minute)
	for _, after := range []time.Duration{0, missingLook / 2, missingLook - 1} {
		got := s.recordMissing(anAccount, gone, began.Add(after))
		if got.Problem != "" || !got.Next.Equal(began.Add(missingLook)) {
			t.Errorf("after %s: %+v", after, got)
		}
	}
	if got := s.recordMissing(anAccount, gone, began.Add(missingLook)); got.Problem != gone.Problem {
		t.Errorf("in the end: %+v", got)
	}

	// The same applies to a Secret that was not read before.
	other := types.NamespacedName{Namespace: "cluster1", Name: "other"}
	for _, after := range []time.Duration{0, missingLook - 1} {
		now := began.Add(after)
		if got := s.recordMissing(other, gone, now).At(now); got.Problem != "" || !got.Next.Equal(began.Add(missingLook)) {
			t.Errorf("never read, after %s: %+v", after, got)
		}
	}
	if got := s.recordMissing(other, gone, began.Add(missingLook)); got.Problem != gone.Problem {
		t.Errorf("never read, in the end: %+v", got)
	}

	// A manager that has just started may learn of another token only then. The absence began before.
	rotated := gone
	rotated.reference.refreshed = midnight.Add(time.Hour)
	late := types.NamespacedName{Namespace: "cluster1", Name: "late"}
	s.recordMissing(late, gone, began)
	for _, after := range []time.Duration{time.Second, missingLook - 1} {
		s.recordMissing(late, rotated, began.Add(after))
		got, ok := s.Current(late, rotated.reference, began.Add(after))
		if !ok || got.Problem != "" || !got.Next.Equal(began.Add(missingLook)) {
			t.Errorf("of another token, after %s: %+v, current: %t", after, got, ok)
		}
	}
	if got := s.recordMissing(late, rotated, began.Add(missingLook)); got.Problem != gone.Problem {
		t.Errorf("of another token, in the end: %+v", got)
	}

	// It is back, and deleted again: that is another period.
	s.record(anAccount, found("b"), began.Add(time.Minute))
	if got := s.recordMissing(anAccount, gone, began.Add(time.Hour)); got.Problem != "" {
		t.Errorf("the second time: %+v", got)
	}
}

func TestLastingProblemIsCheckedLessAndLessOften(t *testing.T) {
	s := &findings{every: CheckEvery}
	unusable := found("a")
	unusable.Digest, unusable.Problem = bearer.Digest{}, "its Secret holds no token"
	unusable.reference.refreshed = midnight.Add(-time.Hour)
	now := midnight
	wait := func(f Finding, want time.Duration) {
		t.Helper()
		if wait := s.record(anAccount, f, now).Next.Sub(now); wait < want || wait > want+want/2 {
			t.Errorf("it is checked after %s, want %s and at most half as much again", wait, want)
		}
	}
	fail := func(want time.Duration) {
		t.Helper()
		now = now.Add(10 * time.Minute) // the check was due meanwhile
		wait(unusable, want)
	}
	for _, want := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second} {
		fail(want)
	}
	before, _ := s.found.Load(anAccount)
	next := before.Next
	now = now.Add(time.Second)
	if again := s.record(anAccount, unusable, now); again.Next.After(next) {
		t.Errorf("a read in between put the check off from %s to %s", next, again.Next)
	}
	fail(CheckEvery)
	fail(CheckEvery)

	// A user is fixing it.
	unusable.Problem = "its Secret holds no ca.crt"
	fail(20 * time.Second)
	fail(40 * time.Second)
	unusable.reference.refreshed = unusable.reference.refreshed.Add(time.Minute)
	if _, ok := s.Current(anAccount, unusable.reference, now); ok {
		t.Error("the account reports another token, which is not read at once")
	}
	fail(20 * time.Second)

	// It is fixed, and later broken again in the same way.
	now = now.Add(10 * time.Minute)
	usable := unusable
	usable.Problem = ""
	wait(usable, CheckEvery)
	fail(20 * time.Second)
}

func TestLastingAbsenceIsCheckedLessAndLessOften(t *testing.T) {
	s := &findings{every: CheckEvery}
	gone := found("a")
	gone.Digest, gone.Problem = bearer.Digest{}, "its Secret is not there"
	now := midnight.Add(time.Hour)
	if got := s.recordMissing(anAccount, gone, now); got.Problem != "" {
		t.Errorf("at first: %+v", got)
	}
	for _, want := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, CheckEvery} {
		now = now.Add(10 * time.Minute)
		got := s.recordMissing(anAccount, gone, now)
		if wait := got.Next.Sub(now); got.Problem != gone.Problem || wait < want || wait > want+want/2 {
			t.Errorf("%+v is checked after %s, want %s and at most half as much again", got, wait, want)
		}
	}
}

func TestFindingFromALaterClockIsRepeated(t *testing.T) {
	s := &findings{every: CheckEvery}
	expired := found("a")
	expired.Digest, expired.Problem = bearer.Digest{}, "its token has expired"
	tomorrow := midnight.Add(24 * time.Hour)
	s.record(anAccount, expired, tomorrow)
	if _, ok := s.Current(anAccount, expired.reference, tomorrow); !ok {
		t.Error("nothing changed, and it is read again")
	}
	if got, ok := s.Current(anAccount, expired.reference, midnight); ok {
		t.Errorf("the clock was put back, and %+v still counts", got)
	}

	// A Secret that was missing by the later clock is read again by this one.
	s.record(anAccount, found("a"), tomorrow)
	gone := found("a")
	gone.Digest, gone.Problem = bearer.Digest{}, "its Secret is not there"
	s.recordMissing(anAccount, gone, tomorrow)
	for _, after := range []time.Duration{0, missingLook} {
		got := s.recordMissing(anAccount, gone, midnight.Add(after))
		if isOver := got.Problem != ""; isOver != (after == missingLook) {
			t.Errorf("after %s: %+v", after, got)
		}
	}
}
