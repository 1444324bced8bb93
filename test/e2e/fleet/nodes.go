package fleet

import (
	"context"
)

// checkSandbox tells early, in one line, when pods could not run here.
func checkSandbox() error {
	return nil
}

func (f *Fleet) startNodes(_ context.Context, _ *progress) error {
	return nil
}
