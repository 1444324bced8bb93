package credentials

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
)

var (
	alice = types.NamespacedName{Namespace: "c", Name: "alice"}
	bob   = types.NamespacedName{Namespace: "d", Name: "bob"}
)

// controlled is operations that a test controls.
type controlled struct {
	*operations
	t     *testing.T
	clock *testingclock.FakeClock

	mu       sync.Mutex
	begun    []string
	enqueued []string
	held     map[string]chan phaseResult // by namespace
}

func newControlled(t *testing.T, wait time.Duration) *controlled {
	t.Helper()
	r := &controlled{t: t, clock: testingclock.NewFakeClock(time.Unix(0, 0)), held: map[string]chan phaseResult{}}
	r.operations = newOperations(2, wait, newFailures(r.clock), func(account types.NamespacedName) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.enqueued = append(r.enqueued, account.Name)
	})
	return r
}

// hold makes operations in a namespace last until the returned function ends one there.
func (r *controlled) hold(namespace string) (end func(phaseResult)) {
	held := make(chan phaseResult)
	r.held[namespace] = held
	return func(e phaseResult) { held <- e }
}

// do records the operations started for an account. Those that are not held copy the token.
func (r *controlled) do(account types.NamespacedName, what operationKind, namespaces ...string) phaseResult {
	act := func(namespace string, _ func() bool) phaseResult {
		r.mu.Lock()
		r.begun = append(r.begun, account.Name+" "+namespace)
		held := r.held[namespace]
		r.mu.Unlock()
		if held != nil {
			return <-held
		}
		return phaseResult{problems: []report.Problem{{Namespace: namespace}}}
	}
	return r.operations.do(account, what, requestsOf(act, namespaces...))
}

func requestsOf(act func(namespace string, revoked func() bool) phaseResult, namespaces ...string) []request {
	var requests []request
	for _, namespace := range namespaces {
		requests = append(requests, request{namespace: namespace, act: func(revoked func() bool) phaseResult {
			return act(namespace, revoked)
		}})
	}
	return requests
}

// began compares the operations started since the last call, in any order.
func (r *controlled) began(want ...string) {
	r.t.Helper()
	r.eventually("begun", &r.begun, want)
}

// enqueues compares which accounts were enqueued since the last call.
func (r *controlled) enqueues(want ...string) {
	r.t.Helper()
	r.eventually("enqueued", &r.enqueued, want)
}

func (r *controlled) eventually(what string, list *[]string, want []string) {
	r.t.Helper()
	apitest.Eventually(r.t, apitest.Patience, what, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		slices.Sort(*list)
		return cmp.Diff(append([]string{}, want...), append([]string{}, *list...))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = nil
}

func TestNamespacesDoNotWaitForEachOther(t *testing.T) {
	r := newControlled(t, time.Hour)
	endA, endB := r.hold("a"), r.hold("b")
	go endB(phaseResult{problems: []report.Problem{{Namespace: "b"}}})
	go endA(phaseResult{errs: []error{errors.New("no")}})
	got := r.do(alice, writing, "a", "b", "c")
	if len(got.problems) != 2 || len(got.errs) != 1 || got.undecided {
		t.Errorf("result %+v, want that of all three", got)
	}
	r.began("alice a", "alice b", "alice c")
	r.enqueues()
}

func TestSlowOperationContinuesByItself(t *testing.T) {
	r := newControlled(t, time.Millisecond)
	end := r.hold("slow")
	if got := r.do(alice, writing, "slow"); !got.undecided || len(got.errs) > 0 {
		t.Errorf("result %+v, want nothing decided", got)
	}
	r.began("alice slow")
	if diff := cmp.Diff([]string{"slow"}, r.namespacesOf(alice)); diff != "" {
		t.Errorf("busy (-want +got):\n%s", diff)
	}
	if got := r.do(alice, withdrawing, "slow"); !got.undecided {
		t.Errorf("result %+v, want it to wait for what is in flight", got)
	}
	r.began()
	end(phaseResult{})
	r.enqueues("alice")
	if left := r.namespacesOf(alice); len(left) > 0 {
		t.Errorf("busy in %v", left)
	}
}

func TestLateFailureIsReportedOnceAndRetriedAtGrowingIntervals(t *testing.T) {
	r := newControlled(t, time.Millisecond)
	end := r.hold("slow")
	for _, pause := range []time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond} {
		r.do(alice, writing, "slow")
		r.began("alice slow")
		end(phaseResult{failing: true, errs: []error{errors.New("refused")}})
		r.enqueues("alice")
		if got := r.do(alice, writing, "slow"); len(got.errs) != 1 || got.undecided || got.again != pause {
			t.Errorf("result %+v, want the failure, and to try again after %s", got, pause)
		}
		r.clock.Step(pause / 2)
		if got := r.do(alice, writing, "slow"); len(got.errs) != 0 || !got.failing || got.again != pause/2 {
			t.Errorf("result %+v, want to try again after %s", got, pause/2)
		}
		r.began()
		r.clock.Step(pause / 2)
	}
	r.do(alice, writing, "slow")
	r.began("alice slow")
	end(phaseResult{failing: true, errs: []error{errors.New("refused")}})
	r.enqueues("alice")
	r.do(alice, withdrawing, "slow")
	r.began("alice slow") // another thing to do is done at once
	end(phaseResult{})
	r.enqueues("alice")
}

// The end of the right to a copy is not a failure, so nothing delays writing it once there
// is a right again.
func TestLateRevocationIsRepeatedOnceTheCopyIsWantedAgain(t *testing.T) {
	r := newControlled(t, time.Millisecond)
	end := r.hold("slow")
	r.do(alice, writing, "slow")
	end(phaseResult{undecided: true}) // as of what is revoked
	r.enqueues("alice")
	r.do(alice, writing, "slow")
	r.began("alice slow", "alice slow")
	end(phaseResult{})
	r.enqueues("alice")
}

func TestANamespaceHasABoundedNumberInFlight(t *testing.T) {
	r := newControlled(t, time.Millisecond)
	end := r.hold("slow")
	var accounts []types.NamespacedName
	for i := range 4 {
		account := types.NamespacedName{Namespace: "c", Name: fmt.Sprintf("account%d", i)}
		accounts = append(accounts, account)
		got := r.do(account, writing, "slow")
		if full := i >= 2; (got.again > 0) != full || !got.undecided {
			t.Errorf("account %d: result %+v", i, got)
		}
	}
	r.began("account0 slow", "account1 slow")
	r.wait = apitest.Patience // it ends in time
	r.do(bob, writing, "fast")
	r.wait = time.Millisecond
	r.do(bob, withdrawing, "slow")
	r.began("bob fast", "bob slow")
	for range 3 { // in whichever order
		end(phaseResult{})
	}
	r.enqueues("account0", "account1", "account2", "account3", "bob")
	r.do(accounts[2], writing, "slow")
	r.began("account2 slow")
	end(phaseResult{})
	r.enqueues("account2")
	if len(r.busy)+len(r.waiting) > 0 {
		t.Errorf("left: %v %v", r.busy, r.waiting)
	}
}

// A token must not be written once the right to it has ended, however long the request
// before it took.
func TestOperationInFlightIsRevoked(t *testing.T) {
	r := newControlled(t, time.Millisecond)
	ask, answer := make(chan struct{}), make(chan bool, 2)
	act := func(_ string, revoked func() bool) phaseResult {
		<-ask
		answer <- revoked()
		return phaseResult{}
	}
	r.operations.do(alice, writing, requestsOf(act, "kept", "ended"))
	r.revoke(alice, func(namespace string) bool { return namespace == "kept" })
	close(ask)
	if first, second := <-answer, <-answer; first == second {
		t.Errorf("revoked: %t and %t, want one of them", first, second)
	}
}

// One bad object must not end the process.
func TestAPanicIsAnError(t *testing.T) {
	r := newControlled(t, apitest.Patience)
	got := r.operations.do(alice, writing, requestsOf(func(string, func() bool) phaseResult { panic("token") }, "a"))
	if len(got.errs) != 1 || strings.Contains(got.errs[0].Error(), "token") {
		t.Errorf("result %+v, want an error without the value", got)
	}
}

func TestAnAccountWaitsForAFreeSlotOnce(t *testing.T) {
	for name, what := range map[string]operationKind{"to write": writing, "to withdraw": withdrawing} {
		t.Run(name, func(t *testing.T) {
			r := newControlled(t, time.Millisecond)
			r.perNamespace = 1
			end := r.hold("slow")
			r.do(bob, what, "slow")
			for range 3 {
				if got := r.do(alice, what, "slow"); got.again != 30*time.Second {
					t.Errorf("retried after %s", got.again)
				}
				if what == writing && r.mayWrite(alice, "slow", inputs{}) {
					t.Error("there is a free slot in a namespace that is full")
				}
			}
			if n := len(r.waiting[limitKey{"slow", what}]); n != 1 {
				t.Errorf("waits %d times", n)
			}
			end(phaseResult{})
			r.enqueues("alice", "bob")
			if !r.mayWrite(alice, "slow", inputs{}) {
				t.Error("there is no free slot in an empty namespace")
			}
		})
	}
}

// An account that is enqueued for a free slot may not need it any more. The next operation
// that ends offers it to others.
func TestUnusedSlotsAreOfferedAgain(t *testing.T) {
	r := newControlled(t, time.Millisecond)
	end := r.hold("slow")
	account := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "c", Name: name} }
	for _, name := range []string{"first", "second", "third", "fourth", "fifth"} {
		r.do(account(name), writing, "slow")
	}
	enqueued := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.enqueued)
	}
	for _, want := range []int{2, 5} { // whose operation ended, and those who get a free slot
		end(phaseResult{})
		apitest.Eventually(t, apitest.Patience, "accounts are enqueued", func() string {
			return cmp.Diff(want, enqueued())
		})
	}
}
