package apitest

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Clock runs ahead of the real time by a duration that the test sets. It is safe for
// concurrent use.
type Clock struct {
	ahead atomic.Int64
	held  atomic.Pointer[time.Time]
}

var _ clock.PassiveClock = &Clock{}

// Ahead returns a clock that runs ahead by the given time. A manager on a fresh server
// needs one where it would wait because the server's CRDs are new.
func Ahead(by time.Duration) *Clock {
	c := &Clock{}
	c.Set(by)
	return c
}

// Set changes how far the clock is ahead.
func (c *Clock) Set(by time.Duration) { c.ahead.Store(int64(by)) }

// Hold makes the clock stand still, except for Set, until release is called, so that the time that requests take on
// a busy machine does not count.
func (c *Clock) Hold() (release func()) {
	now := time.Now()
	c.held.Store(&now)
	return func() { c.held.Store(nil) }
}

// Now returns the time by this clock.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if held := c.held.Load(); held != nil {
		now = *held
	}
	return now.Add(time.Duration(c.ahead.Load()))
}

// Since returns the time passed by this clock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
