// Package await waits for something to become true, outside of tests too.
package await

import (
	"context"
	"fmt"
	"time"
)

// Until polls at the given interval until the condition is true. Errors do not end the
// wait. If ctx ends first, the error includes the last one from before.
func Until(ctx context.Context, what string, every time.Duration, ask func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last error
	began := time.Now()
	for {
		yes, err := ask(ctx)
		if yes && err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			err := fmt.Errorf("gave up after %s waiting for %s: %w",
				time.Since(began).Round(time.Millisecond), what, ctx.Err())
			if last != nil {
				err = fmt.Errorf("%w (%w)", err, last)
			}
			return err
		case <-ticker.C:
		}
	}
}

// Success makes attempts at the given interval until one returns no error, and gives up
// when the limit is over.
func Success(ctx context.Context, what string, limit, every time.Duration, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Until(ctx, what, every, func(ctx context.Context) (bool, error) {
		err := attempt(ctx)
		return err == nil, err
	})
}
