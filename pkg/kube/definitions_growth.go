package kube

import (
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Growth remembers when an object of one of several kinds was last added. While objects of
// any kind are being restored, those of another may follow. The zero value is ready to use
// and safe for concurrent use.
type Growth struct {
	mu     sync.Mutex
	newest time.Time
}

// Last returns when an object was last added; zero if none was.
func (g *Growth) Last() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.newest
}

// last returns when an object was last added, but not a time after now.
func (g *Growth) last(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.newest.After(now) { // the clock was set back, or the hub's clocks are ahead
		g.newest = now
	}
	return g.newest
}

func (g *Growth) added(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.After(g.newest) {
		g.newest = at
	}
}

// handler returns an event handler that records when an informer's objects were added:
// existing ones when they were created, later ones when they arrive.
func (g *Growth) handler(clock clock.PassiveClock) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			switch object, ok := obj.(client.Object); {
			case !isInInitialList:
				g.added(clock.Now())
			case ok:
				g.added(object.GetCreationTimestamp().Time)
			}
		},
	}
}
