package apitest

import (
	"context"
	"testing"
	"time"
)

const (
	// Patience bounds the wait for something that must happen. It is the default of
	// World.Patience.
	Patience = 30 * time.Second

	// RestartPatience bounds the wait for caches that list again after a restart of their
	// API server. client-go pauses before it watches again and before it lists, each time
	// for up to a minute, depending on how long the server was away.
	RestartPatience = 3 * time.Minute

	// The first checks of a wait follow each other quickly, since most things
	// happen within milliseconds; later ones leave the machine to others: most of a
	// story's requests are its checks, and an API server, its etcd and the test work
	// for each of them.
	firstPoll = 2 * time.Millisecond
	slowPoll  = 200 * time.Millisecond

	// stayPoll is how often Stays looks.
	stayPoll = 25 * time.Millisecond

	// pausesPerLimit sets the pace of Within: every 200ms if the limit is a minute.
	// An attempt may cost a process, so longer waits ask less often.
	pausesPerLimit = 300
)

// Eventually waits until check returns "", which otherwise describes what it
// found, and ends the test if that takes longer than the limit. The text what
// completes the sentence "not within 30s: ...".
func Eventually(tb testing.TB, limit time.Duration, what string, check func() string) {
	tb.Helper()
	last := poll(limit, slowPoll, check, func(complaint string) bool { return complaint == "" })
	if last != "" {
		tb.Fatalf("not within %s: %s\nlast seen: %s", limit, what, last)
	}
}

// Within is Eventually for attempts that take a context, which ends with the limit.
// It shows the last error from before then. It also works in the cleanup of a test.
func Within(tb testing.TB, limit time.Duration, what string, attempt func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), limit)
	defer cancel()
	last := "no attempt ended in time"
	check := func() string {
		err := attempt(ctx)
		if err == nil {
			return ""
		}
		if ctx.Err() == nil {
			last = err.Error()
		}
		return last
	}
	slowest := max(slowPoll, limit/pausesPerLimit)
	if poll(limit, slowest, check, func(complaint string) bool { return complaint == "" }) != "" {
		tb.Fatalf("not within %s: %s\nlast seen: %s", limit, what, last)
	}
}

// Stays ends the test if check returns anything but "" while the duration lasts.
// It proves something only after the event that could break it: wait for that
// first.
func Stays(tb testing.TB, duration time.Duration, what string, check func() string) {
	tb.Helper()
	began := time.Now()
	if seen := poll(duration, stayPoll, check, func(complaint string) bool { return complaint != "" }); seen != "" {
		tb.Fatalf("did not stay so for %s: %s\nafter %s: %s", duration, what, time.Since(began).Round(time.Millisecond), seen)
	}
}

// poll calls check until enough accepts its result or the limit is over, and returns the last
// result. It checks a last time at the end.
func poll(limit, slowest time.Duration, check func() string, enough func(string) bool) string {
	end := time.NewTimer(limit)
	defer end.Stop()
	for pause := firstPoll; ; pause = min(pause*3/2, slowest) {
		result := check()
		if enough(result) {
			return result
		}
		select {
		case <-time.After(pause):
		case <-end.C:
			return check()
		}
	}
}

// Succeeds adapts a call that returns an error to Eventually and Stays.
func Succeeds(call func() error) func() string {
	return func() string {
		if err := call(); err != nil {
			return err.Error()
		}
		return ""
	}
}

// Must ends the test if there is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
