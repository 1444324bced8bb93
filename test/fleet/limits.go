package fleet

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// What the servers use to notice that a certificate changed: seen are 16 on a
// hub and 9 on a spoke. The kernel's stock limit is 128 for a user, and a server that
// comes too late only says "too many open files".
const (
	watchesOfHub   = 18
	watchesOfSpoke = 10
)

// checkWatches fails if the fleet does not run and the kernel would not let it.
func (f *Fleet) checkWatches(ctx context.Context, spokes int) error {
	if _, err := f.Processes(ctx); !errors.Is(err, supervisor.ErrNotRunning) {
		return nil
	}
	return checkWatches(spokes, syscall.InotifyInit1)
}

// checkWatches fails before anything starts if the kernel would not let this user watch
// enough files for a fleet.
func checkWatches(spokes int, open func(flags int) (int, error)) error {
	need := watchesOfHub + watchesOfSpoke*spokes
	for have := range need {
		fd, err := open(syscall.IN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("%d spokes need %d inotify instances and this user may have only %d more (%w): "+
				"stop another fleet, or raise the limit: sysctl fs.inotify.max_user_instances=512", spokes, need, have, err)
		}
		defer func() { _ = syscall.Close(fd) }()
	}
	return nil
}
