package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// warnEvery is how often a warning of an API server is logged at most.
	warnEvery = time.Hour

	// maxWarnings is how many different warnings are remembered, and maxWarningBytes how much
	// of each is logged: webhooks write them, too.
	maxWarnings     = 256
	maxWarningBytes = 1024
)

// warnings logs the warnings of all API servers of this process. A deprecated API adds one to
// the response to every request.
var warnings = newRareWarnings(rest.WarningLogger{}, clock.RealClock{})

// rareWarnings passes each text of a warning on once within warnEvery. client-go and
// controller-runtime offer only to log one once in the life of a process, with a memory that
// grows.
type rareWarnings struct {
	next rest.WarningHandlerWithContext

	mu     sync.Mutex // so that simultaneous warnings are passed on once
	passed *cache.LRUExpireCache
}

func newRareWarnings(next rest.WarningHandlerWithContext, clock clock.PassiveClock) *rareWarnings {
	return &rareWarnings{next: next, passed: cache.NewLRUExpireCacheWithClock(maxWarnings, clock)}
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (r *rareWarnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	text = Shorten(text, maxWarningBytes)
	r.mu.Lock()
	_, known := r.passed.Get(text)
	if !known {
		r.passed.Add(text, nil, warnEvery)
	}
	r.mu.Unlock()
	if !known {
		r.next.HandleWarningHeaderWithContext(ctx, code, agent, text)
	}
}
