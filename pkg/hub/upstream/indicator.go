package upstream

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// indicator is an object that shows the mode of one of upstream's writers. It keeps its last
// state until its absence counts, and then notifies its subscribers. It is a
// manager.LeaderElectionRunnable.
type indicator struct {
	clock clock.Clock

	// report gets each verdict: whether the writer is on, or whether that is unknown.
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
func (i *indicator) Start(ctx context.Context) error {
	i.mu.Lock()
	i.ctx = ctx
	asked := i.waiting
	i.waiting = false
	i.mu.Unlock()
	if asked {
		i.notify() // a subscriber that asks again begins the wait
	}
	<-ctx.Done()
	i.timers.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (i *indicator) NeedLeaderElection() bool { return true }

// Subscribe has changed called whenever the verdict may have changed. It must return at
// once.
func (i *indicator) Subscribe(changed func()) { i.subscribed.Subscribe(func(struct{}) { changed() }) }

func (i *indicator) notify() { i.subscribed.Notify(struct{}{}) }

// settle returns the state that counts, given the one found; nil means absent. known is
// false while an absence at the start does not count yet.
func (i *indicator) settle(found client.Object) (counts client.Object, known bool) {
	if found != nil && found.GetDeletionTimestamp() != nil {
		found = nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if found == nil && i.absentFirst && !i.held.Any() {
		return nil, true
	}
	counts, wait := i.held.Settle(found, i.clock.Now())
	if wait == 0 || i.waiting {
		return counts, counts != nil || wait == 0
	}
	i.waiting = true
	if i.ctx != nil {
		timer, ended := i.clock.NewTimer(wait), i.ctx.Done()
		i.timers.Go(func() { i.wake(timer, ended) })
	}
	return counts, counts != nil
}

func (i *indicator) wake(timer clock.Timer, ended <-chan struct{}) {
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C():
	}
	i.mu.Lock()
	i.waiting = false
	i.mu.Unlock()
	i.notify()
}
