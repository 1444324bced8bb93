package kube

import "time"

// AbsenceCounts is how long something must have been gone before its absence counts.
// Controllers that repair their objects, forced upgrades and restores often replace an
// object by deleting and recreating it. They finish within seconds, and withdrawing
// something in between costs consumers much more than keeping it for longer.
const AbsenceCounts = 10 * time.Second

// Held distinguishes a lasting absence from a momentary one. It keeps the last value of
// something; the zero value of T means absent. It is not safe for concurrent use.
type Held[T comparable] struct {
	last  T
	since time.Time // of the absence; zero while there is none
}

// Settle returns the value that counts, given the one found now: a present value counts at
// once, and the last value counts until its absence does. wait is the time until an absence
// counts, zero if none is pending. A wait without a value means that nothing was ever
// found: it may be absent only for a moment.
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

// Unknown returns the last value while nobody can tell whether it still exists. A pending
// absence starts over.
func (h *Held[T]) Unknown() T {
	if h.Any() {
		h.since = time.Time{}
	}
	return h.last
}
