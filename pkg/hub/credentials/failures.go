package credentials

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
)

// operationKind is what to do about an account.
type operationKind int

const (
	// withdrawing and writing concern its copy in a namespace.
	withdrawing operationKind = iota
	writing

	// reading concerns its token.
	reading
)

// operationID identifies an operation, which is repeated if it fails.
type operationID struct {
	account   types.NamespacedName
	namespace string // "" for reading
	kind      operationKind
}

// inputs are what the result of an operation depends on. When they change, earlier failures do not
// predict whether the next attempt fails.
type inputs struct {
	token source.Reference
	owner target.Owner
}

// inputsOf returns the inputs of writing an account's copy in a namespace.
func inputsOf(o observed, to observedTarget) inputs {
	return inputs{source.ReferenceOf(o.account), to.profile.owner}
}

// failures remembers failures, so that each attempt is repeated at growing intervals of its
// own. The queue of accounts cannot count them: slow attempts fail after the
// reconciliation, and an account is reconciled for many reasons. It is safe for concurrent
// use.
type failures struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last map[types.NamespacedName]map[operationID]*failure // by account
}

// failure is the result of an attempt.
type failure struct {
	inputs inputs
	result phaseResult
	at     time.Time
	pause  time.Duration // before it may be repeated

	// Until a success or other inputs: since when it fails, and the pause that doubles with each failure,
	// before urgency shortens it.
	since time.Time
	grown time.Duration

	// received is true once a reconciliation has received it.
	received bool
}

func newFailures(clock clock.PassiveClock) *failures {
	return &failures{clock: clock, last: map[types.NamespacedName]map[operationID]*failure{}}
}

// record stores the result of an attempt if it failed, or if it has problems or a time to look again that
// no reconciliation has received. It returns the result with the time at which to repeat a failed attempt.
func (f *failures) record(what operationID, in inputs, result phaseResult, received bool) phaseResult {
	if received && result.undecided && !result.failed() {
		return result // nothing was tried
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := &failure{inputs: in, result: result, at: f.clock.Now(), received: received}
	last.since = last.at
	if before := f.last[what.account][what]; before != nil && before.inputs == in && before.result.failed() {
		last.grown = before.grown
		if !before.since.After(last.at) { // otherwise the clock was set back
			last.since = before.since
		}
	}
	switch {
	case result.contested:
		last.pause, last.grown = result.again, 0
	case result.failing:
		last.grown = min(max(2*last.grown, fair.RetryFirst), fair.RetryMost)
		last.pause = last.grown
		if what.kind == withdrawing && !last.isLasting(last.at) || result.conflict {
			last.pause = min(last.pause, fair.RetryUrgent)
		}
		last.result.again = cmp.Or(result.again, last.pause)
	}
	f.drop(what)
	if result.failed() || !received && (len(result.problems) > 0 || result.again > 0) {
		if f.last[what.account] == nil {
			f.last[what.account] = map[operationID]*failure{}
		}
		f.last[what.account][what] = last
	}
	return last.result
}

// isLasting reports whether an attempt has failed for long.
func (l *failure) isLasting(now time.Time) bool {
	return l.result.failed() && kube.TimeLeft(l.since, kube.LastingAfter, now) == 0
}

// isStuck reports whether withdrawing an account's copy in a namespace has failed for so long that it is
// no longer urgent: retries of thousands of refused withdrawals would keep all others waiting.
func (f *failures) isStuck(account types.NamespacedName, namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.last[account][operationID{account, namespace, withdrawing}]
	return last != nil && last.isLasting(f.clock.Now())
}

// isPaused reports whether an attempt must not be made now, because it failed a short while
// ago or because no reconciliation has received the last one's result.
func (f *failures) isPaused(what operationID, in inputs) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, paused := f.look(what, in)
	return paused
}

// instead returns the result of the last attempt if the next must not be made now. It
// returns its errors once.
func (f *failures) instead(what operationID, in inputs) (result phaseResult, paused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	age, paused := f.look(what, in)
	if !paused {
		return phaseResult{}, false
	}
	last := f.last[what.account][what]
	result = last.result
	if result.again > 0 {
		result.again = max(result.again-age, time.Millisecond)
	}
	if last.received {
		result.errs = nil
	}
	last.received = true
	return result, true
}

// look returns how long ago the last attempt was made, and whether the next must not be
// made now. It requires the lock.
func (f *failures) look(what operationID, in inputs) (age time.Duration, paused bool) {
	last := f.last[what.account][what]
	if last == nil || last.inputs != in {
		return 0, false
	}
	age = f.clock.Since(last.at)
	if age < 0 { // the clock was set back
		return 0, !last.received
	}
	return age, !last.received || age < last.pause
}

// keep forgets an account's attempts that are no longer wanted.
func (f *failures) keep(account types.NamespacedName, isWanted func(operationID) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for what := range f.last[account] {
		if !isWanted(what) {
			f.drop(what)
		}
	}
}

// drop requires the lock.
func (f *failures) drop(what operationID) {
	delete(f.last[what.account], what)
	if len(f.last[what.account]) == 0 {
		delete(f.last, what.account)
	}
}
