package journeys

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
)

const (
	fleetName = "journeys"
	cluster1  = "cluster1"
	cluster2  = "cluster2"
	// lost is the spoke that a story may leave behind unusable.
	lost = "cluster3"

	startTimeout = 30 * time.Minute
)

var (
	// world is the fleet that the stories happen in.
	world *fleet.Fleet
	// noAccess is why the fleet has no way in to its spokes; nil when it has.
	noAccess error
)

func TestMain(m *testing.M) {
	node.Init()
	noAccess = node.CheckOwnNetworks()
	os.Exit(inFleet(m.Run))
}

func inFleet(run func() int) int {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	f, err := fleet.Up(ctx, fleet.Options{Name: fleetName, Spokes: 3, Access: noAccess == nil}, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the fleet:", err)
		return 1
	}
	world = f
	code := run()
	if os.Getenv("KEEP_FLEET") != "" {
		return code
	}
	if code != 0 {
		keepLogs(f)
	}
	if err := fleet.Down(ctx, fleetName, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the fleet:", err)
		return 1
	}
	return code
}

// keepLogs saves the logs of a fleet in which a story failed from its removal.
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
