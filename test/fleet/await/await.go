// Package await waits for something to become true.
package await

import (
	"context"
	"fmt"
	"time"
)

// Until asks at the given interval until the answer is yes. Errors do not end
// the wait; the last one is part of the error when ctx ends first.
func Until(ctx context.Context, what string, every time.Duration, ask func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		yes, err := ask(ctx)
		if yes && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("gave up waiting for %s: %w (%w)", what, ctx.Err(), err)
			}
			return fmt.Errorf("gave up waiting for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
