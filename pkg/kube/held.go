package kube

import "time"

// AbsenceCounts is how long something must have been gone before its absence
// counts. Many replace an object by deleting and creating it: controllers that
// repair theirs, forced upgrades, restores. They are done within seconds, and what
// is withdrawn in between costs consumers much more than what stays for longer.
const AbsenceCounts = 10 * time.Second

// Held tells an absence that lasts from one that is over in a moment. It keeps the
// last value of something; the zero value of T means that it is gone. It is not
// safe for concurrent use.
type Held[T comparable] struct {
	last  T
	since time.Time // of the absence; zero while there is none
}

// Settle returns what counts, given what is found now: what is there counts at
// once, and the last value counts until its absence does. wait is how long until an
// absence counts, zero if none is pending. A wait without a value means that nothing
// has been there yet: it may be gone only for a moment.
func (h *Held[T]) Settle(found T, now time.Time) (counts T, wait time.Duration) {
	var gone T
	if found != gone {
		h.last, h.since = found, time.Time{}
		return found, 0
	}
	if h.since.IsZero() || now.Before(h.since) {
		h.since = now
	}
	if wait = h.since.Add(AbsenceCounts).Sub(now); wait > 0 {
		return h.last, wait
	}
	h.last = gone
	return gone, 0
}

// Any reports whether there is a value that counts.
func (h *Held[T]) Any() bool {
	var gone T
	return h.last != gone
}

// Unknown returns the last value while it cannot be told whether it is still
// there. An absence that did not count yet begins anew.
func (h *Held[T]) Unknown() T {
	if h.Any() {
		h.since = time.Time{}
	}
	return h.last
}
