package source

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// CheckEvery is about how often every Secret is read although its account's status has
	// not changed. Each check is delayed by up to half as much again, so that they spread.
	CheckEvery = 4 * time.Minute

	// problemEvery is the same for a Secret with nothing to copy, and for a token that has
	// expired according to the account's status: a user may be fixing it, or a clock. While a
	// Secret has the same problem, the interval doubles at each check, up to CheckEvery:
	// thousands of unusable Secrets must not cost hundreds of requests a second.
	problemEvery = 20 * time.Second

	// secondLook is when a new token is read again: times in an account's status have a
	// resolution of one second, and managed-serviceaccount's agent issues two tokens within a
	// second if its cache lags.
	secondLook = 2 * time.Second

	// missingLook is when a missing Secret is read again before its copies are withdrawn: its
	// agent, which may be far away, recreates a deleted Secret. The token itself is still valid
	// meanwhile.
	missingLook = kube.AbsenceCounts

	// justNow is how old a new token may be, by the spoke's clock.
	justNow = time.Minute
)

// Finding is the result of reading an account's Secret.
type Finding struct {
	Digest  bearer.Digest
	Expires time.Time
	Problem string    // why it cannot be copied, or ""
	Next    time.Time // when to read again; zero means only when the account changes

	reference Reference     // by which it was read
	at        time.Time     // when it was recorded
	every     time.Duration // until the next check, without the random delay
}

// At returns the finding as of a later time: a token may have expired.
func (f Finding) At(now time.Time) Finding {
	if f.Problem == "" && !now.Before(f.Expires) {
		return Finding{Problem: hasExpired(f.Expires)}
	}
	return f
}

// findings remembers the result of the last read of each account's Secret. It is safe for
// concurrent use.
type findings struct {
	every   time.Duration
	found   kube.Memory[types.NamespacedName, Finding] // by account
	missing kube.Debounce[types.NamespacedName]        // accounts whose Secret was missing at the last read
}

// Current returns the finding for an account's present reference. ok is false if it is time to read again.
// A finding from a later time was made by a clock that has been set back since: the token
// may not have expired after all.
func (s *findings) Current(account types.NamespacedName, ref Reference, now time.Time) (f Finding, ok bool) {
	f, ok = s.found.Load(account)
	return f, ok && f.reference == ref && now.Before(f.Next) && !now.Before(f.at)
}

// record stores a finding until the next check, whose time it sets.
func (s *findings) record(account types.NamespacedName, f Finding, now time.Time) Finding {
	s.found.Update(account, func(before Finding, known bool) (Finding, bool) {
		first := !known || before.reference != f.reference
		f.every = s.interval(f, before, first, now)
		f.at, f.Next = now, now.Add(f.every+rand.N(f.every/2)) //nolint:gosec // when to look is no secret
		switch {
		// Whatever the clocks say, a changed reference means another token.
		case first && (known && f.Problem == "" || now.Sub(f.reference.refreshed).Abs() < justNow):
			f.Next = now.Add(min(secondLook, f.every))
		case !first && now.Before(before.Next) && before.Next.Before(f.Next):
			f.Next = before.Next // reading for another reason does not postpone the check
		}
		s.missing.Over(account)
		return f, true
	})
	return f
}

// interval returns how long after a finding to check again, without the random delay. first
// says that it is the first one for its reference.
func (s *findings) interval(f, before Finding, first bool, now time.Time) time.Duration {
	switch {
	case f.Problem == "":
		return s.every
	case first || before.Problem != f.Problem:
		return min(s.every, problemEvery)
	case now.Before(before.Next): // read for another reason
		return before.every
	default:
		return min(s.every, 2*before.every)
	}
}

// recordMissing records that the Secret is missing. The previous finding stays in force until the
// Secret has been missing for a while. If there is none, as after a start, copies stay as they are
// for that time. The same holds if the account refers to another token meanwhile: right after a start,
// its cache may still show the one before.
func (s *findings) recordMissing(account types.NamespacedName, f Finding, now time.Time) Finding {
	if before, ok := s.waitForMissing(account, f.reference, now); ok {
		return before
	}
	return s.record(account, f, now)
}

// waitForMissing returns the finding that stays in force while a missing Secret may be
// recreated; ok is false if it no longer does.
func (s *findings) waitForMissing(account types.NamespacedName, ref Reference, now time.Time) (f Finding, ok bool) {
	s.found.Update(account, func(before Finding, known bool) (Finding, bool) {
		if !known {
			before = Finding{reference: ref, Expires: now.Add(2 * missingLook)} // of an unknown token
		}
		if before.Problem != "" {
			return before, true
		}
		before.reference = ref
		before.at = s.missing.Since(account, now)
		before.Next = before.at.Add(missingLook)
		f, ok = before, now.Before(before.Next)
		return before, true
	})
	return f, ok
}

// Forget drops what is known about an account with nothing to copy.
func (s *findings) Forget(account types.NamespacedName) {
	s.found.Forget(account)
	s.missing.Over(account)
}
