package kube

import (
	"cmp"
	"sync"
	"time"
)

// LastingAfter is how long a transient error must last before people are told of it.
const LastingAfter = 30 * time.Second

// Lasting measures for how long something has failed at every attempt, by key. A key that
// does not fail takes no memory. The zero value is ready to use and safe for concurrent
// use.
type Lasting[K comparable] struct {
	// After is how long a failure must last; zero means LastingAfter. It must not change
	// after the first use.
	After time.Duration

	mu    sync.Mutex
	since map[K]time.Time
}

// Failed records a failure and reports whether failures have lasted long enough.
func (l *Lasting[K]) Failed(key K, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, ok := l.since[key]
	if !ok || now.Before(since) {
		if l.since == nil {
			l.since = map[K]time.Time{}
		}
		since = now
		l.since[key] = now
	}
	return now.Sub(since) >= cmp.Or(l.After, LastingAfter)
}

// Over records that the failure is over.
func (l *Lasting[K]) Over(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, key)
}
