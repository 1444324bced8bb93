package upstream

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// evidence is an object that shows the mode of one of upstream's writers. It keeps its last
// state until its absence counts, and then notifies its subscribers. It is a
// manager.LeaderElectionRunnable.
type evidence struct {
	clock clock.Clock

	// report is told each verdict: whether the writer is on, or whether that is unknown.
	report func(on, unknown bool)

	// absentFirst makes an absence at the start count at once.
	absentFirst bool

	mu      sync.Mutex
	held    kube.Held[client.Object]
	ctx     context.Context // of Start; nil before
	waiting bool            // an absence will count unless it ends first

	subscribed kube.Subscribers[struct{}]

	timers sync.WaitGroup
}

// Start implements manager.Runnable.
func (e *evidence) Start(ctx context.Context) error {
	e.mu.Lock()
	e.ctx = ctx
	asked := e.waiting
	e.waiting = false
	e.mu.Unlock()
	if asked {
		e.notify() // a subscriber that asks again begins the wait
	}
	<-ctx.Done()
	e.timers.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e *evidence) NeedLeaderElection() bool { return true }

// Subscribe has changed called whenever the verdict may have changed. It must return at
// once.
func (e *evidence) Subscribe(changed func()) { e.subscribed.Subscribe(func(struct{}) { changed() }) }

func (e *evidence) notify() { e.subscribed.Tell(struct{}{}) }

// settle returns the state that counts, given the one found; nil means absent. known is
// false while an absence at the start does not count yet.
func (e *evidence) settle(found client.Object) (counts client.Object, known bool) {
	if found != nil && found.GetDeletionTimestamp() != nil {
		found = nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if found == nil && e.absentFirst && !e.held.Any() {
		return nil, true
	}
	counts, wait := e.held.Settle(found, e.clock.Now())
	if wait == 0 || e.waiting {
		return counts, counts != nil || wait == 0
	}
	e.waiting = true
	if e.ctx != nil {
		timer, ended := e.clock.NewTimer(wait), e.ctx.Done()
		e.timers.Go(func() { e.wake(timer, ended) })
	}
	return counts, counts != nil
}

func (e *evidence) wake(timer clock.Timer, ended <-chan struct{}) {
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C():
	}
	e.mu.Lock()
	e.waiting = false
	e.mu.Unlock()
	e.notify()
}
