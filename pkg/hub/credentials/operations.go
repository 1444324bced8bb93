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

// operations writes and withdraws copies, independently in each namespace. It bounds how
// many are in flight in a namespace; withdrawals do not count against writes. It is safe
// for concurrent use.
type operations struct {
	perNamespace int
	wait         time.Duration
	failures     *failures

	// again enqueues an account after an operation has ended that no caller waited for, or when
	// there may be a free slot for its next one.
	again func(account types.NamespacedName)

	mu      sync.Mutex
	busy    map[string]map[types.NamespacedName]*operation // by namespace and account, which has one at a time there
	waiting kube.SetIndex[limitKey, types.NamespacedName]  // accounts that found no free slot
}

// limitKey identifies a limit: that of one kind of operation in a namespace.
type limitKey struct {
	namespace string
	kind      operationKind
}

func newOperations(
	perNamespace int, wait time.Duration, failures *failures, again func(types.NamespacedName),
) *operations {
	return &operations{
		perNamespace: perNamespace, wait: wait, failures: failures, again: again,
		busy: map[string]map[types.NamespacedName]*operation{}, waiting: kube.SetIndex[limitKey, types.NamespacedName]{},
	}
}

// operation is an operation in progress.
type operation struct {
	operationID
	inputs inputs

	done   chan struct{} // closed at the end
	result phaseResult   // once done

	left bool // no caller waits for it

	// revoked says that the account has lost the right to the copy being written.
	revoked atomic.Bool
}

// request is a namespace for an operation, its inputs, and what to do there: act must not start to write a
// token once it is revoked.
type request struct {
	namespace string
	inputs    inputs
	act       func(revoked func() bool) phaseResult
}

// do performs an operation in some namespaces at the same time, and returns the results of those
// that did not take long. One that failed a short while ago is not repeated: do returns
// that result.
func (o *operations) do(account types.NamespacedName, what operationKind, requests []request) phaseResult {
	var all phaseResult
	var begun []*operation
	for _, request := range requests {
		op, instead := o.begin(operationID{account, request.namespace, what}, request.inputs)
		if op == nil {
			all = join(all, instead)
			continue
		}
		begun = append(begun, op)
		go func() { o.end(op, contained(func() phaseResult { return request.act(op.revoked.Load) })) }()
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
func contained(act func() phaseResult) (result phaseResult) {
	defer func() {
		if recovered := recover(); recovered != nil {
			utilruntime.HandleError(fmt.Errorf("panic: %T\n%s", recovered, debug.Stack()))
			result = phaseResult{undecided: true, failing: true, errs: []error{errors.New("panic: see the log")}}
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
		if op := ops[account]; op != nil && op.kind == writing && !isKept(namespace) {
			op.revoked.Store(true)
		}
	}
}

// mayWrite reports whether a copy could be written now, given the namespace's limit and
// earlier failures.
func (o *operations) mayWrite(account types.NamespacedName, namespace string, in inputs) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.busy[namespace][account] == nil && o.freeSlots(limitKey{namespace, writing}) > 0 &&
		!o.failures.isPaused(operationID{account, namespace, writing}, in)
}

// freeSlots returns how many more may start. It requires the lock.
func (o *operations) freeSlots(of limitKey) int {
	free := o.perNamespace
	for _, op := range o.busy[of.namespace] {
		if op.kind == of.kind {
			free--
		}
	}
	return free
}

// begin returns an operation, or nil and the result to use instead.
func (o *operations) begin(what operationID, in inputs) (op *operation, instead phaseResult) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := limitKey{what.namespace, what.kind}
	if o.busy[what.namespace][what.account] != nil {
		return nil, phaseResult{undecided: true} // its end enqueues the account
	}
	if instead, paused := o.failures.instead(what, in); paused {
		return nil, instead
	}
	if o.freeSlots(of) <= 0 {
		o.waiting.Insert(of, what.account)
		return nil, phaseResult{undecided: true, again: fullWait}
	}
	op = &operation{operationID: what, inputs: in, done: make(chan struct{})}
	if o.busy[what.namespace] == nil {
		o.busy[what.namespace] = map[types.NamespacedName]*operation{}
	}
	o.busy[what.namespace][what.account] = op
	return op, phaseResult{}
}

// resultOf returns the result of an operation, or that it has not ended.
func (o *operations) resultOf(op *operation) phaseResult {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-op.done:
		return op.result
	default:
		op.left = true
		return phaseResult{undecided: true}
	}
}

// end records the result of an operation. Accounts that left it, or wait for a free slot, are
// enqueued.
func (o *operations) end(op *operation, result phaseResult) {
	var enqueue []types.NamespacedName
	o.mu.Lock()
	of := limitKey{op.namespace, op.kind}
	op.result = o.failures.record(op.operationID, op.inputs, result, !op.left)
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

// takeWaiting removes as many waiting accounts as there are free slots. Accounts removed
// before may not have used theirs. It requires the lock.
func (o *operations) takeWaiting(of limitKey) []types.NamespacedName {
	var accounts []types.NamespacedName
	free := o.freeSlots(of)
	for account := range o.waiting[of] {
		if len(accounts) == free {
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
