package kube

import (
	"maps"
	"slices"
	"time"
)

const (
	// AbsenceCounts is how long something must have been gone before its absence counts.
	// Controllers that repair their objects, forced upgrades and restores often replace an
	// object by deleting and recreating it. They finish within seconds, and withdrawing
	// something in between costs consumers much more than keeping it for longer.
	AbsenceCounts = 10 * time.Second

	// LastingAfter is how long a transient error or doubt must last before it is reported.
	LastingAfter = 30 * time.Second
)

// Debounce knows for how long something has been so, by key: an absence, a failure. What is
// not so takes no memory. When the clock is set back, it begins again, so that no caller
// waits longer than the whole time. The zero value is ready to use and safe for concurrent
// use.
type Debounce[K comparable] struct{ keys Memory[K, lasting] }

type lasting struct {
	since time.Time
	asked time.Time // the last time that Since, Left or Lasted was called
}

// Since records that it is so, and returns since when.
func (d *Debounce[K]) Since(key K, now time.Time) (since time.Time) {
	d.keys.Update(key, func(before lasting, known bool) (lasting, bool) {
		if since = before.since; !known || since.After(now) {
			since = now
		}
		return lasting{since: since, asked: now}, true
	})
	return since
}

// Left records that it is so, and returns the time until it has been so for long enough.
func (d *Debounce[K]) Left(key K, enough time.Duration, now time.Time) time.Duration {
	return TimeLeft(d.Since(key, now), enough, now)
}

// Lasted records that it is so, and reports whether it has been so for long enough.
func (d *Debounce[K]) Lasted(key K, enough time.Duration, now time.Time) bool {
	return d.Left(key, enough, now) == 0
}

// Begun returns since when it has been so; ok is false if it is not so.
func (d *Debounce[K]) Begun(key K) (since time.Time, ok bool) {
	entry, ok := d.keys.Load(key)
	return entry.since, ok
}

// Over records that it is no longer so.
func (d *Debounce[K]) Over(keys ...K) {
	for _, key := range keys {
		d.keys.Forget(key)
	}
}

// OverUnless records the only keys for which it is still so.
func (d *Debounce[K]) OverUnless(still func(K) bool) {
	d.keys.DeleteFunc(func(key K, _ lasting) bool { return !still(key) })
}

// Sweep forgets keys about which no caller has asked for a while.
func (d *Debounce[K]) Sweep(unused time.Duration, now time.Time) {
	d.keys.DeleteFunc(func(_ K, entry lasting) bool { return TimeLeft(entry.asked, unused, now) == 0 })
}

// Keys returns of what it is so, in no order.
func (d *Debounce[K]) Keys() []K { return slices.Collect(maps.Keys(d.keys.All())) }

// Len returns of how many keys it is so.
func (d *Debounce[K]) Len() int { return d.keys.Len() }

// TimeLeft returns the time until something has lasted long enough. Setting back the clock
// does not extend it.
func TimeLeft(since time.Time, enough time.Duration, now time.Time) time.Duration {
	return min(max(since.Add(enough).Sub(now), 0), enough)
}
