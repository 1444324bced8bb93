package await

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

var errNotYet = errors.New("not yet")

func TestSuccessMakesAttemptsUntilOneSucceeds(t *testing.T) {
	attempts := 0
	err := Success(t.Context(), "the third attempt", time.Minute, time.Millisecond, func(context.Context) error {
		if attempts++; attempts < 3 {
			return errNotYet
		}
		return nil
	})
	if err != nil || attempts != 3 {
		t.Errorf("after %d attempts: %v, want success at the third", attempts, err)
	}
}

func TestTheErrorTellsWhatFailedBeforeTheLimit(t *testing.T) {
	attempts := 0
	err := Success(t.Context(), "the impossible", 50*time.Millisecond, time.Millisecond, func(ctx context.Context) error {
		if attempts++; attempts < 3 {
			return errNotYet
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errNotYet) {
		t.Errorf("got %v, want it to wrap the deadline and the last error before it", err)
	}
	if !strings.Contains(err.Error(), "waiting for the impossible") {
		t.Errorf("got %v, want it to name what was awaited", err)
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Until(ctx, "the impossible", time.Millisecond, func(context.Context) (bool, error) {
		cancel()
		return false, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled wait", err)
	}
}
