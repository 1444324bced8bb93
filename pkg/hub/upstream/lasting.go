package upstream

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// lasting is one piece of evidence. It keeps its last state until its absence
// counts, and then tells those who want to know. It is a
// manager.LeaderElectionRunnable.
type lasting struct {
	clock clock.Clock

	// absentFirst makes an absence from the first count at once.
	absentFirst bool

	mu         sync.Mutex
	held       kube.Held[client.Object]
	ctx        context.Context // of Start; nil before
	waiting    bool            // an absence will count unless it ends
	subscribed []func()

	timers sync.WaitGroup
}

// Start implements manager.Runnable.
func (l *lasting) Start(ctx context.Context) error {
	l.mu.Lock()
	l.ctx = ctx
	asked := l.waiting
	l.waiting = false
	l.mu.Unlock()
	if asked {
		l.notify() // those who ask again begin the wait
	}
	<-ctx.Done()
	l.timers.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l *lasting) NeedLeaderElection() bool { return true }

// Subscribe has changed called whenever the answers may have changed. It must
// return at once.
func (l *lasting) Subscribe(changed func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribed = append(l.subscribed, changed)
}

func (l *lasting) notify() {
	l.mu.Lock()
	subscribed := l.subscribed
	l.mu.Unlock()
	for _, changed := range subscribed {
		changed()
	}
}

// settle returns the state that counts, given the one that is found; nil is
// absence. known is false while an absence from the first does not count yet.
func (l *lasting) settle(found client.Object) (counts client.Object, known bool) {
	if found != nil && found.GetDeletionTimestamp() != nil {
		found = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if found == nil && l.absentFirst && !l.held.Any() {
		return nil, true
	}
	counts, wait := l.held.Settle(found, l.clock.Now())
	if wait == 0 || l.waiting {
		return counts, counts != nil || wait == 0
	}
	l.waiting = true
	if l.ctx != nil {
		timer, ended := l.clock.NewTimer(wait), l.ctx.Done()
		l.timers.Go(func() { l.wake(timer, ended) })
	}
	return counts, counts != nil
}

// wake notifies when the timer ends.
func (l *lasting) wake(timer clock.Timer, ended <-chan struct{}) {
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C():
	}
	l.mu.Lock()
	l.waiting = false
	l.mu.Unlock()
	l.notify()
}
