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
	// operationWait is how long a reconciliation waits for its operations in some
	// namespaces. Slower ones continue without it, so that no slow namespace delays the
	// account, or other accounts.
	operationWait = time.Second

	// fullWait is how soon to retry at the latest if a namespace has its maximum in flight.
	// Normally the end of an operation there triggers the retry. It is long because many may wait.
	fullWait = 30 * time.Second
)

// operations carries out tasks about copies, independently in each namespace. It bounds how
// many are in flight in a namespace; withdrawals do not count against writes. It is safe
// for concurrent use.
type operations struct {
	perNamespace int
	wait         time.Duration
	failures     *failures

	// again enqueues an account after an operation has ended that no caller waited for, or when
	// there may be room for its next one.
	again func(account types.NamespacedName)

	mu      sync.Mutex
	busy    map[string]map[types.NamespacedName]*operation // by namespace and account, which has one at a time there
	waiting kube.SetIndex[share, types.NamespacedName]     // accounts for which there was no room
}

// share is one kind of operation in a namespace, with its own limit.
type share struct {
	namespace string
	task      task
}

func newOperations(
	perNamespace int, wait time.Duration, failures *failures, again func(types.NamespacedName),
) *operations {
	return &operations{
		perNamespace: perNamespace, wait: wait, failures: failures, again: again,
		busy: map[string]map[types.NamespacedName]*operation{}, waiting: kube.SetIndex[share, types.NamespacedName]{},
	}
}

// operation is an operation in progress.
type operation struct {
	attempt
	goal goal

	done   chan struct{} // closed at the end
	result effect        // once done

	left bool // no caller waits for it

	// revoked says that the account has lost the right to the copy being written.
	revoked atomic.Bool
}

// request is a namespace for a task, its goal, and what to do there: act must not start to write a
// token once it is revoked.
type request struct {
	namespace string
	goal      goal
	act       func(revoked func() bool) effect
}

// do performs a task in some namespaces at the same time, and returns the results of those
// that did not take long. A task that failed a short while ago is not repeated: do returns
// that result.
func (o *operations) do(account types.NamespacedName, what task, requests []request) effect {
	var all effect
	var begun []*operation
	for _, request := range requests {
		op, instead := o.begin(attempt{account, request.namespace, what}, request.goal)
		if op == nil {
			all = join(all, instead)
			continue
		}
		begun = append(begun, op)
		go func() { o.end(op, contained(func() effect { return request.act(op.revoked.Load) })) }()
	}
	enough := time.NewTimer(o.wait)
	defer enough.Stop()
	for _, op := range begun {
		select {
		case <-op.done:
		case <-enough.C:
			enough.Reset(0) // for the next one
		}
		all = join(all, o.resultOf(op))
	}
	return all
}

// contained turns a panic into an error, as controllers do.
func contained(act func() effect) (result effect) {
	defer func() {
		if recovered := recover(); recovered != nil {
			utilruntime.HandleError(fmt.Errorf("panic: %T\n%s", recovered, debug.Stack()))
			result = effect{undecided: true, failing: true, errs: []error{errors.New("panic: see the log")}}
		}
	}()
	return act()
}

// revoke keeps operations in flight for an account from starting to write a token in the
// namespaces that are not kept.
func (o *operations) revoke(account types.NamespacedName, isKept func(namespace string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for namespace, ops := range o.busy {
		if op := ops[account]; op != nil && op.task == writing && !isKept(namespace) {
			op.revoked.Store(true)
		}
	}
}

// mayWrite reports whether a copy could be written now, given the namespace's limit and
// earlier failures.
func (o *operations) mayWrite(account types.NamespacedName, namespace string, to goal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.busy[namespace][account] == nil && o.room(share{namespace, writing}) > 0 &&
		!o.failures.isPaused(attempt{account, namespace, writing}, to)
}

// room returns how many more may start. It requires the lock.
func (o *operations) room(of share) int {
	room := o.perNamespace
	for _, op := range o.busy[of.namespace] {
		if op.task == of.task {
			room--
		}
	}
	return room
}

// begin returns an operation, or nil and the result to use instead.
func (o *operations) begin(what attempt, to goal) (op *operation, instead effect) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := share{what.namespace, what.task}
	if o.busy[what.namespace][what.account] != nil {
		return nil, effect{undecided: true} // its end enqueues the account
	}
	if instead, paused := o.failures.instead(what, to); paused {
		return nil, instead
	}
	if o.room(of) <= 0 {
		o.waiting.Insert(of, what.account)
		return nil, effect{undecided: true, again: fullWait}
	}
	op = &operation{attempt: what, goal: to, done: make(chan struct{})}
	if o.busy[what.namespace] == nil {
		o.busy[what.namespace] = map[types.NamespacedName]*operation{}
	}
	o.busy[what.namespace][what.account] = op
	return op, effect{}
}

// resultOf returns the result of an operation, or that it has not ended.
func (o *operations) resultOf(op *operation) effect {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-op.done:
		return op.result
	default:
		op.left = true
		return effect{undecided: true}
	}
}

// end records the result of an operation. Accounts that left it, or wait for room, are
// enqueued.
func (o *operations) end(op *operation, result effect) {
	var enqueue []types.NamespacedName
	o.mu.Lock()
	of := share{op.namespace, op.task}
	op.result = o.failures.record(op.attempt, op.goal, result, !op.left)
	close(op.done)
	if delete(o.busy[op.namespace], op.account); len(o.busy[op.namespace]) == 0 {
		delete(o.busy, op.namespace)
	}
	if op.left {
		enqueue = append(enqueue, op.account)
	}
	enqueue = append(enqueue, o.takeWaiting(of)...)
	o.mu.Unlock()
	for _, account := range enqueue {
		o.again(account)
	}
}

// takeWaiting removes as many waiting accounts as there is room for. Accounts removed
// before may not have used theirs. It requires the lock.
func (o *operations) takeWaiting(of share) []types.NamespacedName {
	var accounts []types.NamespacedName
	room := o.room(of)
	for account := range o.waiting[of] {
		if len(accounts) == room {
			break
		}
		o.waiting.Delete(of, account)
		accounts = append(accounts, account)
	}
	return accounts
}

// namespacesOf returns the namespaces with an operation about an account's copies.
func (o *operations) namespacesOf(account types.NamespacedName) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var namespaces []string
	for namespace, ops := range o.busy {
		if ops[account] != nil {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}
