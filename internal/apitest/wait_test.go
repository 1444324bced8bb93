package apitest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that is expected to fail; it keeps the reason.
type failing struct {
	testing.TB
	reason string
}

// run runs a function as a test that may fail, and returns why it did.
func run(t *testing.T, test func(testing.TB)) string {
	t.Helper()
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	return f.reason
}

func (f *failing) Errorf(format string, args ...any) { f.reason += fmt.Sprintf(format, args...) }

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

const (
	short = 50 * time.Millisecond
	long  = time.Minute
)

func TestEventually(t *testing.T) { synctest.Test(t, testEventually) }

func testEventually(t *testing.T) {
	checks := 0
	third := func() string {
		if checks++; checks < 3 {
			return fmt.Sprint("check ", checks)
		}
		return ""
	}
	if reason := run(t, func(tb testing.TB) { Eventually(tb, long, "the third check", third) }); reason != "" ||
		checks != 3 {
		t.Errorf("after %d checks: %q, want success at the third", checks, reason)
	}
	checks = 0
	never := func() string {
		checks++
		return fmt.Sprint("check ", checks)
	}
	reason := run(t, func(tb testing.TB) { Eventually(tb, short, "the impossible", never) })
	want := fmt.Sprintf("not within 50ms: the impossible\nlast seen: check %d", checks)
	if reason != want || checks < 3 {
		t.Errorf("got %q, want %q", reason, want)
	}
}

func TestEventuallyChecksOnceMoreAtTheEnd(t *testing.T) {
	synctest.Test(t, testEventuallyChecksOnceMoreAtTheEnd)
}

func testEventuallyChecksOnceMoreAtTheEnd(t *testing.T) {
	began := time.Now()
	late := func() string {
		if time.Since(began) < short {
			return "too early"
		}
		return ""
	}
	if reason := run(t, func(tb testing.TB) { Eventually(tb, short, "late", late) }); reason != "" {
		t.Error(reason)
	}
}

func TestWithin(t *testing.T) { synctest.Test(t, testWithin) }

func testWithin(t *testing.T) {
	attempts := 0
	third := func(ctx context.Context) error {
		if attempts++; attempts < 3 {
			return errors.New("too early")
		}
		return ctx.Err()
	}
	if reason := run(t, func(tb testing.TB) { Within(tb, long, "the third", third) }); reason != "" || attempts != 3 {
		t.Errorf("after %d attempts: %q, want success at the third", attempts, reason)
	}
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	reason := run(t, func(tb testing.TB) { Within(tb, short, "the impossible", hangs) })
	if want := "not within 50ms: the impossible\nlast seen: no attempt ended in time"; reason != want {
		t.Errorf("got %q, want %q", reason, want)
	}
	attempts = 0
	failsThenHangs := func(ctx context.Context) error {
		if attempts++; attempts < 3 {
			return fmt.Errorf("attempt %d", attempts)
		}
		return hangs(ctx)
	}
	reason = run(t, func(tb testing.TB) { Within(tb, short, "the impossible", failsThenHangs) })
	if want := "not within 50ms: the impossible\nlast seen: attempt 2"; reason != want {
		t.Errorf("got %q, want %q", reason, want)
	}
}

func TestWithinWaitsInCleanup(t *testing.T) {
	attempts := 0
	t.Run("the test that ends", func(t *testing.T) {
		t.Cleanup(func() {
			Within(t, long, "the second attempt", func(ctx context.Context) error {
				if attempts++; attempts < 2 {
					return errors.New("too early")
				}
				return ctx.Err()
			})
		})
	})
	if attempts != 2 {
		t.Errorf("%d attempts, want 2", attempts)
	}
}

func TestStays(t *testing.T) { synctest.Test(t, testStays) }

func testStays(t *testing.T) {
	if reason := run(t, func(tb testing.TB) { Stays(tb, short, "good", func() string { return "" }) }); reason != "" {
		t.Error(reason)
	}
	checks := 0
	breaks := func() string {
		if checks++; checks < 3 {
			return ""
		}
		return "broken"
	}
	reason := run(t, func(tb testing.TB) { Stays(tb, long, "good", breaks) })
	if !strings.Contains(reason, "did not stay so for 1m0s: good") || !strings.HasSuffix(reason, ": broken") ||
		checks != 3 {
		t.Errorf("after %d checks: %q", checks, reason)
	}
}

func TestRunReportsHowItEnds(t *testing.T) {
	t.Run("by being stopped, once", func(t *testing.T) {
		ended := false
		reason := run(t, func(tb testing.TB) {
			stop := Run(tb, func(ctx context.Context) error {
				<-ctx.Done()
				ended = true
				return nil
			})
			stop()
			stop()
		})
		if reason != "" || !ended {
			t.Errorf("reason %q, ended: %t", reason, ended)
		}
	})
	t.Run("with an error", func(t *testing.T) {
		reason := run(t, func(tb testing.TB) { Run(tb, func(context.Context) error { return errors.New("no hub") })() })
		if reason != "ended with: no hub" {
			t.Errorf("reason %q", reason)
		}
	})
}
