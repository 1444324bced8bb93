package credentials

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// laneWait is how long a reconciliation waits for what it does in some namespaces.
	// What takes longer goes on without it, so that no slow namespace keeps the account
	// from being reconciled, nor the others' accounts.
	laneWait = time.Second

	// fullWait is how soon to retry at the latest where a namespace has as much in
	// flight as it may. Normally something that ends there is the occasion.
	fullWait = 5 * time.Second
)

// task is what to do about an account's copy in a namespace.
type task int

const (
	withdrawing task = iota
	writing
	tasks
)

// lanes does what is to be done about copies, in each namespace by itself. It bounds
// how much is in flight in a namespace; withdrawals do not count against writes. It is
// safe for concurrent use.
type lanes struct {
	perNamespace int
	wait         time.Duration

	// again enqueues an account for which something has ended that nobody waited for,
	// or that may find room now.
	again func(account types.NamespacedName)

	mu       sync.Mutex
	busy     map[lane]struct{}
	inFlight map[string]*[tasks]int // by namespace
	late     map[types.NamespacedName]failures
	waiting  map[string][]types.NamespacedName // accounts for which there was no room, by namespace
}

// lane is one account in one namespace, where one thing is done at a time.
type lane struct {
	account   types.NamespacedName
	namespace string
}

// failures are of what ended when nobody waited for it any more.
type failures map[failure]effect

type failure struct {
	namespace string
	task      task
}

func newLanes(perNamespace int, wait time.Duration, again func(types.NamespacedName)) *lanes {
	return &lanes{
		perNamespace: perNamespace, wait: wait, again: again,
		busy: map[lane]struct{}{}, inFlight: map[string]*[tasks]int{},
		late:    map[types.NamespacedName]failures{},
		waiting: map[string][]types.NamespacedName{},
	}
}

// errand is something being done.
type errand struct {
	lane lane
	task task

	done   chan struct{} // closed at the end
	result effect        // once done

	left bool // nobody waits for it
}

// do does a task in some namespaces at the same time, and returns what came of those
// that did not take long. earlier are failures of what took longer the last time: the
// same is not done again at once.
func (l *lanes) do(
	account types.NamespacedName, what task, namespaces []string, earlier failures, act func(namespace string) effect,
) effect {
	var all effect
	var begun []*errand
	for _, namespace := range namespaces {
		if failed, ok := earlier[failure{namespace, what}]; ok {
			all = join(all, failed)
			continue
		}
		e, wait := l.begin(lane{account, namespace}, what)
		if e == nil {
			all = join(all, effect{undecided: true, again: wait})
			continue
		}
		begun = append(begun, e)
		go func() { l.end(e, act(namespace)) }()
	}
	enough := time.NewTimer(l.wait)
	defer enough.Stop()
	for _, e := range begun {
		select {
		case <-e.done:
		case <-enough.C:
			enough.Reset(0) // for the next
		}
		all = join(all, l.resultOf(e))
	}
	return all
}

// begin returns an errand, or nil and when to retry: zero if somebody will say.
func (l *lanes) begin(in lane, what task) (*errand, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, busy := l.busy[in]; busy {
		return nil, 0 // its end enqueues the account
	}
	if l.inFlight[in.namespace] == nil {
		l.inFlight[in.namespace] = &[tasks]int{}
	}
	if l.inFlight[in.namespace][what] >= l.perNamespace {
		l.waiting[in.namespace] = append(l.waiting[in.namespace], in.account)
		return nil, fullWait
	}
	l.inFlight[in.namespace][what]++
	l.busy[in] = struct{}{}
	return &errand{lane: in, task: what, done: make(chan struct{})}, 0
}

// resultOf returns what came of an errand, or that it has not ended.
func (l *lanes) resultOf(e *errand) effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-e.done:
		return e.result
	default:
		e.left = true
		return effect{undecided: true}
	}
}

// end records what came of an errand. Whoever left, or waits for room, is enqueued.
func (l *lanes) end(e *errand, result effect) {
	var enqueue []types.NamespacedName
	l.mu.Lock()
	e.result = result
	close(e.done)
	delete(l.busy, e.lane)
	namespace := e.lane.namespace
	if l.inFlight[namespace][e.task]--; *l.inFlight[namespace] == ([tasks]int{}) {
		delete(l.inFlight, namespace)
	}
	if e.left {
		enqueue = append(enqueue, e.lane.account)
		if !result.ok() || len(result.problems) > 0 {
			if l.late[e.lane.account] == nil {
				l.late[e.lane.account] = failures{}
			}
			l.late[e.lane.account][failure{namespace, e.task}] = result
		}
	}
	if waiting := l.waiting[namespace]; len(waiting) > 0 {
		enqueue = append(enqueue, waiting[0])
		if l.waiting[namespace] = waiting[1:]; len(waiting) == 1 {
			delete(l.waiting, namespace)
		}
	}
	l.mu.Unlock()
	for _, account := range enqueue {
		l.again(account)
	}
}

// takeFailures returns, once, the failures of an account's errands that nobody waited
// for.
func (l *lanes) takeFailures(account types.NamespacedName) failures {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := l.late[account]
	delete(l.late, account)
	return failed
}

// namespacesOf returns where something is being done about an account's copies.
func (l *lanes) namespacesOf(account types.NamespacedName) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var namespaces []string
	for in := range l.busy {
		if in.account == account {
			namespaces = append(namespaces, in.namespace)
		}
	}
	return namespaces
}
