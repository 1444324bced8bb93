package kube

import "time"

// Held keeps the last value of something until its absence counts; the zero value of T means
// absent. It is not safe for concurrent use.
type Held[T comparable] struct {
	last T
	gone Debounce[struct{}]
}

// Settle returns the value that counts, given the one found now: a present value counts at
// once, and the last value counts until its absence does. wait is the time until an absence
// counts, zero if none is pending. A wait without a value means that nothing was ever
// found: it may be absent only for a moment.
func (h *Held[T]) Settle(found T, now time.Time) (counts T, wait time.Duration) {
	return h.SettleAfter(AbsenceCounts, found, now)
}

// SettleAfter is Settle, but an absence counts only after the given time.
func (h *Held[T]) SettleAfter(patience time.Duration, found T, now time.Time) (counts T, wait time.Duration) {
	var gone T
	if found != gone {
		h.last = found
		h.gone.Over(struct{}{})
		return found, 0
	}
	if wait = h.gone.Left(struct{}{}, patience, now); wait == 0 {
		h.last = gone
	}
	return h.last, wait
}

// Any reports whether there is a value that counts.
func (h *Held[T]) Any() bool {
	var gone T
	return h.last != gone
}

// Unknown returns the last value while it is unknown whether it still exists. A pending
// absence starts over.
func (h *Held[T]) Unknown() T {
	if h.Any() {
		h.gone.Over(struct{}{})
	}
	return h.last
}
