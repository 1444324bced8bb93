package kube

import (
	"cmp"
	"sync"
	"time"
)

// LastingAfter is how long an error that may pass by itself goes on before people are
// told of it.
const LastingAfter = 30 * time.Second

// Lasting tells for how long something has failed at every attempt, by key. A key that
// does not fail takes no memory. The zero value is ready for use, and safe for
// concurrent use.
type Lasting[K comparable] struct {
	// After is for how long it must have; zero means LastingAfter. It must not change
	// after the first use.
	After time.Duration

	mu    sync.Mutex
	since map[K]time.Time
}

// Failed records a failure and reports whether it has lasted for long enough.
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

// Over records that there is no failure any more.
func (l *Lasting[K]) Over(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, key)
}
