package apitest

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Clock is ahead of the real time by what a test says. Time passes by it as it does.
// It is safe for concurrent use.
type Clock struct{ ahead atomic.Int64 }

var _ clock.PassiveClock = &Clock{}

// Ahead returns a clock that is ahead by the given time. A manager on a fresh server
// needs one where it waits for something because the server's CRDs are new.
func Ahead(by time.Duration) *Clock {
	c := &Clock{}
	c.Set(by)
	return c
}

// Set changes by how much the clock is ahead.
func (c *Clock) Set(by time.Duration) { c.ahead.Store(int64(by)) }

// Now returns the time by this clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since returns the time passed by this clock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
