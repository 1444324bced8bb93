package apitest

import (
	"flag"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// hostility is how long Hostile lasts.
var hostility = flag.Duration("hostile", 5*time.Second,
	"how long tests let another client rewrite what this project's programs write")

const (
	// hostileEvery is how often Hostile acts: 50 times a second.
	hostileEvery = 20 * time.Millisecond

	// hostileRounds is how many times at once it acts at most.
	hostileRounds = 8

	// hostileMore is how much longer than the flag says it acts at most.
	hostileMore = 2 * time.Minute

	// hostileLeast is how often it acts in all, even where every request takes long.
	hostileLeast = 40
)

// Hostile has another client interfere 50 times a second, for as long as the flag -hostile
// says and, on a busy machine, until the program under test has noticed, and returns how often
// that was. Rounds overlap where one takes longer than that, up to hostileRounds. A nil noticed
// counts as true.
func Hostile(tb testing.TB, act func(n int) error, noticed func() bool) (times int) {
	tb.Helper()
	tick := time.NewTicker(hostileEvery)
	defer tick.Stop()
	var rounds errgroup.Group
	rounds.SetLimit(hostileRounds)
	began := time.Now()
	goesOn := func() bool {
		lasted := time.Since(began)
		switch {
		case times < hostileLeast, lasted < *hostility:
			return true
		case noticed == nil, lasted > *hostility+hostileMore:
			return false
		default:
			return times%hostileLeast != 0 || !noticed()
		}
	}
	for ; goesOn(); times++ {
		<-tick.C
		n := times
		rounds.Go(func() error { return act(n) })
	}
	Must(tb, rounds.Wait())
	return times
}
