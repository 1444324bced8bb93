package journeys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
)

// The spokes of a fleet.
const (
	Cluster1 = "cluster1"
	Cluster2 = "cluster2"
)

const (
	startTimeout = 30 * time.Minute

	// roomRecheck is how soon to try again whether the kernel lets this user watch enough
	// files for another fleet.
	roomRecheck = 5 * time.Second
)

var (
	// Fleet is the fleet of this process's stories, from the first use of Installed,
	// ClientOf or Hub.
	Fleet *fleet.Fleet

	// options are those of the fleet, and start starts it.
	options fleet.Options
	start   = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		var err error
		for {
			Fleet, err = fleet.Up(ctx, options, os.Stderr)
			if !errors.Is(err, syscall.EMFILE) {
				return err
			}
			// Others' fleets watch as many files as the kernel allows, until their stories end.
			select {
			case <-ctx.Done():
				return err
			case <-time.After(roomRecheck):
			}
		}
	})

	// access says whether the stories of this process need access to spokes.
	access bool
	// noAccess is why they cannot be reached through cluster-proxy here.
	noAccess error
)

// Main is the TestMain of a package of stories: it runs them, on a fleet with the given
// options that the first of them starts, and removes that fleet. With KEEP_FLEET set, the
// fleet stays. If Access is not available here, the fleet starts without it; WithAccess
// then skips the stories that need it.
func Main(m *testing.M, of fleet.Options) {
	node.Init()
	options = of
	if access = of.Access; access {
		noAccess = node.CheckOwnNetworks()
		options.Access, options.Consumers = noAccess == nil, noAccess == nil && of.Consumers
	}
	code := m.Run()
	if err := end(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the fleet:", err)
		code = max(code, 1)
	}
	os.Exit(code) //nolint:forbidigo // a TestMain ends the process
}

func end(failed bool) error {
	if Fleet == nil || os.Getenv("KEEP_FLEET") != "" { //nolint:forbidigo // who runs the stories says so
		return nil
	}
	if failed {
		keepLogs(Fleet)
	}
	return fleet.Down(context.Background(), options.Name, os.Stderr)
}

// keepLogs saves the logs of a fleet with a failed story from removal.
func keepLogs(f *fleet.Fleet) {
	dir, err := os.MkdirTemp("", "cluster-inventory-journeys-")
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(f.LogDir()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeping the logs:", err)
		return
	}
	fmt.Fprintln(os.Stderr, "the fleet's logs are in", dir)
}

// WithAccess skips a story, and says so, if the fleet lacks what it needs. It never skips
// one in CI.
func WithAccess(t *testing.T) {
	t.Helper()
	switch {
	case noAccess == nil:
	case os.Getenv("CI") != "": //nolint:forbidigo // as CI systems say
		t.Fatal(noAccess)
	default:
		t.Skip(noAccess)
	}
}
