package credentials

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// laneWait is how long a reconciliation waits for what it does in some namespaces.
	// What takes longer goes on without it, so that no slow namespace keeps the account
	// from being reconciled, nor the others' accounts.
	laneWait = time.Second

	// fullWait is how soon to retry at the latest where a namespace has as much in
	// flight as it may. Normally something that ends there is the occasion. For a first
	// copy or a rotation the wait is longer, because many may wait.
	fullWait        = 5 * time.Second
	fullWaitToWrite = 30 * time.Second
)

// lanes does what is to be done about copies, in each namespace by itself. It bounds
// how much is in flight in a namespace; withdrawals do not count against writes. It is
// safe for concurrent use.
type lanes struct {
	perNamespace int
	wait         time.Duration
	failures     *failures

	// again enqueues an account for which something has ended that nobody waited for,
	// or that may find room now.
	again func(account types.NamespacedName)

	mu       sync.Mutex
	busy     map[lane]*operation
	inFlight map[string]*[tasks]int                      // by namespace
	waiting  kube.SetIndex[string, types.NamespacedName] // accounts for which there was no room, by namespace
}

// lane is one account in one namespace, where one thing is done at a time.
type lane struct {
	account   types.NamespacedName
	namespace string
}

func newLanes(
	perNamespace int, wait time.Duration, failures *failures, again func(types.NamespacedName),
) *lanes {
	return &lanes{
		perNamespace: perNamespace, wait: wait, failures: failures, again: again,
		busy: map[lane]*operation{}, inFlight: map[string]*[tasks]int{},
		waiting: kube.SetIndex[string, types.NamespacedName]{},
	}
}

// operation is something being done.
type operation struct {
	lane lane
	task task
	goal goal

	done   chan struct{} // closed at the end
	result effect        // once done

	left bool // nobody waits for it

	// revoked tells that the account has lost the right to what is being written.
	revoked atomic.Bool
}

// request is a namespace where to do something, and what that is to achieve.
type request struct {
	namespace string
	goal      goal
}

// do does a task in some namespaces at the same time, and returns what came of those
// that did not take long. What failed a short while ago is not repeated: do returns
// what came of it then. act must not begin to write a token once it is revoked.
func (l *lanes) do(
	account types.NamespacedName, what task, requests []request,
	act func(namespace string, revoked func() bool) effect,
) effect {
	var all effect
	var begun []*operation
	for _, request := range requests {
		op, instead := l.begin(lane{account, request.namespace}, what, request.goal)
		if op == nil {
			all = join(all, instead)
			continue
		}
		begun = append(begun, op)
		go func() { l.end(op, contained(func() effect { return act(request.namespace, op.revoked.Load) })) }()
	}
	enough := time.NewTimer(l.wait)
	defer enough.Stop()
	for _, op := range begun {
		select {
		case <-op.done:
		case <-enough.C:
			enough.Reset(0) // for the next
		}
		all = join(all, l.resultOf(op))
	}
	return all
}

// contained makes an error of a panic, as controllers do.
func contained(act func() effect) (result effect) {
	defer func() {
		if recovered := recover(); recovered != nil {
			utilruntime.HandleError(fmt.Errorf("panic: %T\n%s", recovered, debug.Stack()))
			result = effect{undecided: true, failing: true, errs: []error{errors.New("panic: see the log")}}
		}
	}()
	return act()
}

// revoke keeps what is in flight for an account from beginning to write a token in
// the namespaces that are not kept.
func (l *lanes) revoke(account types.NamespacedName, isKept func(namespace string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for in, op := range l.busy {
		if in.account == account && op.task == writing && !isKept(in.namespace) {
			op.revoked.Store(true)
		}
	}
}

// mayWrite reports whether a copy could be written now, as far as the namespace and
// earlier failures go.
func (l *lanes) mayWrite(account types.NamespacedName, to request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, busy := l.busy[lane{account, to.namespace}]
	return !busy && !l.isFull(to.namespace, writing) &&
		!l.failures.isPaused(attempt{account, to.namespace, writing}, to.goal)
}

// isFull requires the lock.
func (l *lanes) isFull(namespace string, what task) bool {
	counts := l.inFlight[namespace]
	return counts != nil && counts[what] >= l.perNamespace
}

// begin returns an operation, or nil and what to do instead.
func (l *lanes) begin(in lane, what task, to goal) (op *operation, instead effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, busy := l.busy[in]; busy {
		return nil, effect{undecided: true} // its end enqueues the account
	}
	if instead, paused := l.failures.instead(attempt{in.account, in.namespace, what}, to); paused {
		return nil, instead
	}
	if l.isFull(in.namespace, what) {
		l.waiting.Insert(in.namespace, in.account)
		if what == writing {
			return nil, effect{undecided: true, again: fullWaitToWrite}
		}
		return nil, effect{undecided: true, again: fullWait}
	}
	if l.inFlight[in.namespace] == nil {
		l.inFlight[in.namespace] = &[tasks]int{}
	}
	l.inFlight[in.namespace][what]++
	op = &operation{lane: in, task: what, goal: to, done: make(chan struct{})}
	l.busy[in] = op
	return op, effect{}
}

// resultOf returns what came of an operation, or that it has not ended.
func (l *lanes) resultOf(op *operation) effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-op.done:
		return op.result
	default:
		op.left = true
		return effect{undecided: true}
	}
}

// end records what came of an operation. Whoever left, or waits for room, is enqueued.
func (l *lanes) end(op *operation, result effect) {
	var enqueue []types.NamespacedName
	l.mu.Lock()
	namespace := op.lane.namespace
	op.result = l.failures.record(attempt{op.lane.account, namespace, op.task}, op.goal, result, !op.left)
	close(op.done)
	delete(l.busy, op.lane)
	if l.inFlight[namespace][op.task]--; *l.inFlight[namespace] == ([tasks]int{}) {
		delete(l.inFlight, namespace)
	}
	if op.left {
		enqueue = append(enqueue, op.lane.account)
	}
	for account := range l.waiting[namespace] {
		l.waiting.Delete(namespace, account)
		enqueue = append(enqueue, account)
		break
	}
	l.mu.Unlock()
	for _, account := range enqueue {
		l.again(account)
	}
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
