package credentials

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

var failedNow = phaseResult{failing: true, errs: []error{errors.New("no")}}

// TestAttempts counts the attempts in ten minutes of an account that is reconciled ten
// times a second.
func TestAttempts(t *testing.T) {
	tests := map[string]struct {
		kind   operationKind
		result phaseResult
		want   int
	}{
		"a write that fails": {kind: writing, result: failedNow, want: 21},
		"a write of what others keep changing": {kind: writing,
			result: phaseResult{contested: true, again: kube.RepairEvery}, want: 61},
		"a token that cannot be read": {kind: reading, result: failedNow, want: 21},
		"a late write": {kind: writing,
			result: phaseResult{failing: true, conflict: true}, want: 127},
		"a withdrawal that fails, urgent for half a minute": {kind: withdrawing, result: failedNow, want: 23},
		"a write that succeeds, or finds a foreign Secret":  {kind: writing, result: phaseResult{again: foreignEvery}, want: 6001},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := testingclock.NewFakePassiveClock(time.Unix(0, 0))
			f, what, attempts := newFailures(now), operationID{account: alice, kind: test.kind}, 0
			for at := time.Duration(0); at <= 10*time.Minute; at += 100 * time.Millisecond {
				now.SetTime(time.Unix(0, 0).Add(at))
				if !f.isPaused(what, inputs{}) {
					attempts++
					f.record(what, inputs{}, test.result, true)
				}
			}
			if attempts != test.want {
				t.Errorf("%d attempts, want %d", attempts, test.want)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	what, other := operationID{alice, "team", writing}, operationID{alice, "other", writing}
	fail := func(f *failures) { f.record(what, inputs{}, failedNow, true) }
	tests := map[string]struct {
		then   func(f *failures, now *testingclock.FakePassiveClock)
		paused bool
	}{
		"it failed": {paused: true},
		"it failed a while ago": {
			then: func(_ *failures, now *testingclock.FakePassiveClock) { now.SetTime(now.Now().Add(time.Hour)) },
		},
		"it failed in time to come": {
			then: func(_ *failures, now *testingclock.FakePassiveClock) { now.SetTime(now.Now().Add(-time.Hour)) },
		},
		"it succeeded": {
			then: func(f *failures, _ *testingclock.FakePassiveClock) { f.record(what, inputs{}, phaseResult{}, true) },
		},
		"something else succeeded": {
			then:   func(f *failures, _ *testingclock.FakePassiveClock) { f.record(other, inputs{}, phaseResult{}, true) },
			paused: true,
		},
		"it is not wanted any more": {
			then: func(f *failures, _ *testingclock.FakePassiveClock) {
				f.keep(alice, func(kept operationID) bool { return kept != what })
			},
		},
		"something else is not wanted any more": {
			then: func(f *failures, _ *testingclock.FakePassiveClock) {
				f.keep(alice, func(kept operationID) bool { return kept == what })
				f.keep(bob, func(operationID) bool { return false })
			},
			paused: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := testingclock.NewFakePassiveClock(time.Unix(10000, 0))
			f := newFailures(now)
			fail(f)
			if test.then != nil {
				test.then(f, now)
			}
			if got := f.isPaused(what, inputs{}); got != test.paused {
				t.Errorf("paused: %t, want %t", got, test.paused)
			}
			if f.isPaused(what, inputs{owner: target.Owner{UID: "another"}}) {
				t.Error("paused for another owner")
			}
			f.keep(alice, func(operationID) bool { return false })
			if len(f.last) > 0 {
				t.Errorf("left in memory: %v", f.last)
			}
		})
	}
}

// A withdrawal is urgent again once it has succeeded, and stays urgent if the clock is set back.
func TestAWithdrawalThatFailsForLongIsStuck(t *testing.T) {
	start := time.Unix(10000, 0)
	now := testingclock.NewFakePassiveClock(start)
	f, what := newFailures(now), operationID{alice, "team", withdrawing}
	for _, step := range []struct {
		at     time.Duration
		result phaseResult
		stuck  bool
	}{
		{0, failedNow, false},
		{29 * time.Second, failedNow, false},
		{30 * time.Second, failedNow, true},
		{-time.Hour, failedNow, false},
		{-time.Hour + time.Minute, failedNow, true},
		{-time.Hour + 2*time.Minute, phaseResult{}, false},
		{-time.Hour + 3*time.Minute, failedNow, false},
	} {
		now.SetTime(start.Add(step.at))
		f.record(what, inputs{}, step.result, true)
		if got := f.isStuck(alice, "team"); got != step.stuck {
			t.Errorf("stuck at %s: %t, want %t", step.at, got, step.stuck)
		}
	}
	if f.isStuck(bob, "team") || f.isStuck(alice, "other") {
		t.Error("others are stuck")
	}
}

// An operation with other inputs starts over: its first failure is retried as soon as any first one.
func TestOtherInputsStartOver(t *testing.T) {
	f, what := newFailures(testingclock.NewFakePassiveClock(time.Unix(0, 0))), operationID{alice, "team", writing}
	for range 5 {
		f.record(what, inputs{}, failedNow, true)
	}
	if got := f.record(what, inputs{owner: target.Owner{UID: "another"}},
		failedNow, true); got.again != 20*time.Millisecond {
		t.Errorf("retried after %s", got.again)
	}
}

// A late result is reported, although it need not be repeated later than at once.
func TestLateResultIsReportedOnce(t *testing.T) {
	f, what := newFailures(testingclock.NewFakePassiveClock(time.Unix(0, 0))), operationID{alice, "team", writing}
	f.record(what, inputs{}, phaseResult{problems: []report.Problem{{Namespace: "team"}}, again: foreignEvery}, false)
	if got, paused := f.instead(what, inputs{}); !paused || len(got.problems) != 1 || got.again != foreignEvery {
		t.Errorf("result %+v (%t), want the problem", got, paused)
	}
	if _, paused := f.instead(what, inputs{}); paused {
		t.Error("returned twice")
	}
}

// A skipped attempt, because there was nothing to try it with, has not succeeded.
func TestSkippedAttemptDoesNotCount(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	f := newFailures(clock)
	what := operationID{account: types.NamespacedName{Namespace: "c1", Name: "reader"}, namespace: "team", kind: writing}
	first := f.record(what, inputs{}, failedNow, true).again
	f.record(what, inputs{}, phaseResult{undecided: true, again: time.Millisecond}, true)
	if second := f.record(what, inputs{}, failedNow, true).again; second <= first {
		t.Errorf("repeated after %s, and then after %s", first, second)
	}
}
