package credentials

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// refuse refuses the writes of Secrets in a namespace.
func (w *world) refuse(namespace string, answer apitest.Fault) {
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.IsWrite() && strings.Contains(call.Path, "/namespaces/"+namespace+"/secrets") {
			return answer
		}
		return apitest.Fault{}
	})
}

// ended waits until nothing is in flight for the account.
func (v *still) ended() {
	v.T.Helper()
	v.Eventually("what is in flight ends", func() string {
		return strings.Join(v.creds.operations.namespacesOf(v.accountKey()), ", ")
	})
}

// sourceReads is how often the account's token was read.
func (v *still) sourceReads() int {
	path := "/api/v1/namespaces/" + v.cluster + "/secrets/reader"
	return len(slices.DeleteFunc(readsOf(v.wire.Calls()), func(read string) bool { return read != path }))
}

// A refused write is repeated at growing intervals, whether the refusal comes at once or
// when the reconciliation is over, and however often the account is reconciled. A
// withdrawal is repeated every five seconds, and is urgent, for the first half minute.
func TestRefusalIsRetriedAtGrowingIntervals(t *testing.T) {
	const (
		every = 5 * time.Second
		looks = 121 // in ten minutes
	)
	refusals := map[string]apitest.Fault{
		"forbidden": {Status: http.StatusForbidden, Reason: "Forbidden", Message: "no"},
		"invalid":   {Status: http.StatusUnprocessableEntity, Reason: "Invalid", Message: "no"},
		"failing":   {Status: http.StatusInternalServerError, Reason: "InternalError", Message: "no"},
	}
	for when, wait := range map[string]time.Duration{"at once": time.Hour, "late": time.Nanosecond} {
		for name, answer := range refusals {
			run := func(t *testing.T, prepare func(v *still)) *still {
				s := newStepper(t, func(o *Options) { o.operationWait = wait })
				v := s.still(s.Name("refused"))
				prepare(v)
				v.refuse(v.team, answer)
				v.wire.Reset()
				for look := range looks {
					v.time.Set(time.Duration(look) * every)
					_, _ = v.step() // errors are what is counted
					if v.ended(); wait < time.Second {
						_, _ = v.step() // the end has the account looked at
					}
				}
				return v
			}
			t.Run("a first copy, "+name+" "+when, func(t *testing.T) {
				v := run(t, func(*still) {})
				attempts := len(v.wire.Writes("secrets"))
				if attempts < 15 || attempts > 25 {
					t.Errorf("tried %d times in ten minutes, want about 20", attempts)
				}
				checks := 0
				if answer.Status == http.StatusInternalServerError {
					checks = 3 // of a token that may have been copied
				}
				if reads := v.sourceReads(); reads < attempts || reads > attempts+checks {
					t.Errorf("the token was read %d times to be written %d times", reads, attempts)
				}
			})
			t.Run("a withdrawal, "+name+" "+when, func(t *testing.T) {
				v := run(t, func(v *still) {
					v.converge(v.there)
					v.watched()
					onAccount(func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })(v)
					v.caughtUp()
				})
				if attempts := len(v.wire.Writes("secrets")); attempts < 15 || attempts > 25 {
					t.Errorf("tried %d times in ten minutes, want about 20", attempts)
				}
			})
		}
	}
}

// Thousands of withdrawals that a policy refuses must not keep other accounts waiting.
func TestAWithdrawalThatIsRefusedForLongIsUrgentNoLonger(t *testing.T) {
	s := newStepper(t)
	s.time.Hold()
	v := s.still(s.Name("stuck"))
	v.converge(v.there)
	v.watched()
	onAccount(func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })(v)
	v.caughtUp()
	v.refuse(v.team, apitest.Fault{Status: http.StatusUnprocessableEntity, Reason: "Invalid", Message: "a policy says no"})
	v.wire.Reset()
	urgency := func() int {
		return s.copies.(*Reconciler).priority(reconcile.Request{NamespacedName: v.accountKey()})
	}
	for look := range 6 { // every five seconds
		v.time.Set(time.Duration(look) * 5 * time.Second)
		if _, err := v.step(); err == nil || urgency() != watch.PriorityHigh {
			t.Errorf("look %d: %v, priority %d; want an urgent failure", look, err, urgency())
		}
	}
	v.time.Set(kube.LastingAfter)
	if _, err := v.step(); err == nil || urgency() != watch.PriorityNormal {
		t.Errorf("%v, priority %d; want a failure that is not urgent", err, urgency())
	}
	if result, err := v.step(); err != nil || result.RequeueAfter <= 0 {
		t.Errorf("reconcile = %+v, %v; want it to wait", result, err)
	}
	v.wire.Fail(nil)
	v.time.Set(kube.LastingAfter + time.Minute)
	v.converge(v.gone)
}

// A late refusal is returned as an error once for each time.
func TestALateRefusalIsAnErrorOnce(t *testing.T) {
	s := newStepper(t, func(o *Options) { o.operationWait = time.Nanosecond })
	v := s.still(s.Name("late"))
	v.refuse(v.team, apitest.Fault{Status: http.StatusInternalServerError, Reason: "InternalError", Message: "no"})
	var failed int
	for look := range 20 {
		v.time.Set(time.Duration(look) * time.Minute)
		for range 3 {
			if _, err := v.step(); err != nil {
				failed++
			}
			v.ended()
		}
	}
	if attempts := len(v.wire.Writes("secrets")); failed != attempts {
		t.Errorf("%d errors of %d attempts", failed, attempts)
	}
}

// An account that waits for a free slot in a namespace does not read its token.
func TestATokenIsNotReadWhileNoSlotIsFree(t *testing.T) {
	for name, copied := range map[string]bool{"a first copy": false, "a rotation": true} {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t, func(o *Options) { o.operationWait, o.WorkersPerNamespace = time.Millisecond, 1 })
			s.time.Set(2 * time.Minute) // no token is so new that it is read twice
			waiting := s.still(s.Name("waiting"))
			writing := s.still(s.Name("writing"))
			writing.publish(waiting.team, writing.cluster)
			writing.team = waiting.team
			onAccount(func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = waiting.team })(writing)
			if copied {
				waiting.converge(waiting.there)
				waiting.watched()
			}
			release, writes := s.holdSecrets(waiting.team)
			s.wire.Reset()
			writing.caughtUp()
			if _, err := writing.step(); err != nil {
				t.Fatal(err)
			}
			s.Eventually("the namespace is full", func() string {
				if writes() == 0 {
					return "nothing is written"
				}
				return ""
			})
			want := 0
			if copied {
				waiting.token = waiting.Rotate(waiting.account)
				want = 1 // whether the copy may stay
			}
			waiting.caughtUp()
			for range 3 {
				if result, err := waiting.step(); err != nil || result.RequeueAfter == 0 {
					t.Errorf("reconcile = %+v, %v; want it to be looked at again", result, err)
				}
			}
			if got := waiting.sourceReads(); got != want {
				t.Errorf("the token was read %d times while there was no free slot, want %d", got, want)
			}
			s.time.Set(3 * time.Minute) // a second look at a rotated token is due, and there is no third
			release()
			writing.ended()
			waiting.converge(waiting.there)
			if got := waiting.sourceReads(); got != want+1 {
				t.Errorf("the token was read %d times in all, want %d", got, want+1)
			}
			if got := writes(); got != 2 {
				t.Errorf("%d writes, want one of each account", got)
			}
		})
	}
}

// timers is a queue that records after what time accounts are reconciled again, unless that
// is at once.
type timers struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	mu    sync.Mutex
	after []time.Duration
}

func (q *timers) AddAfter(_ reconcile.Request, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if after > 0 {
		q.after = append(q.after, after)
	}
}

// A failure in one namespace does not postpone what time brings in another: here, the
// token's expiry.
func TestAnErrorInOneNamespaceKeepsTheTimersOfOthers(t *testing.T) {
	const left = 10 * time.Second
	s := newStepper(t)
	v := s.still(s.Name("timers"))
	failing := s.team()
	v.publish(failing, v.cluster)
	expires := s.time.Now().Add(10 * time.Minute)
	v.token = ocmtest.Token(expires)
	v.StoreToken(v.account, v.token, ocmtest.CA())
	v.ReportToken(v.account, "reader", expires.Add(time.Hour))
	v.refuse(failing, apitest.Fault{Status: http.StatusInternalServerError, Reason: "InternalError", Message: "no"})
	onAccount(func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = v.team + "," + failing })(v)
	v.caughtUp()
	for minute := range 9 {
		v.time.Set(time.Duration(minute) * time.Minute)
		_, _ = v.step() // it fails
	}
	v.time.Set(time.Until(expires) - left)
	queue := &timers{}
	apitest.Must(t, s.creds.accountTrigger.Start(t.Context(), queue))

	if _, err := v.step(); err == nil {
		t.Error("the write was not retried")
	}
	queue.mu.Lock()
	after := slices.Clone(queue.after)
	queue.mu.Unlock()
	if len(after) != 1 || after[0] > left {
		t.Errorf("looked at again after %v, want at most %s", after, left)
	}
	if result, err := v.step(); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > left {
		t.Errorf("reconcile = %+v, %v; want a look within %s", result, err, left)
	}
}

// The rule fails for one namespace. Its result for another counts.
func TestUnknownNamespaceDelaysNoOther(t *testing.T) {
	s := newStepper(t)
	v := s.still(s.Name("rule"))
	unknown := s.team()
	v.publish(unknown, v.cluster)
	onAccount(func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = v.team + "," + unknown })(v)
	v.caughtUp()
	v.converge(v.there)
	v.watched()
	v.rule.breakFor(unknown)
	v.rule.say(v.team, v.cluster, selection.Result{Answer: selection.No, Why: "is out"})
	if _, err := v.step(); err == nil {
		t.Error("the rule is not asked again")
	}
	if v.copied(v.team, v.cluster, "reader") != nil {
		t.Error("the copy was not withdrawn")
	}
	if v.copied(unknown, v.cluster, "reader") == nil {
		t.Error("the copy was withdrawn where nothing is known")
	}
	if all := unobservedOf(observed{targets: []observedTarget{{namespace: unknown,
		err: errors.New("no answer")}}}); !all.undecided ||
		len(all.problems) != 1 || all.problems[0].Namespace != unknown || all.problems[0].Text != "no answer" {
		t.Errorf("it is not reported: %+v", all)
	}
}
