package fleet

import (
	"context"
	"fmt"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// Supervise is the fleet's supervisor: it returns when the fleet has been told
// to stop and all its processes have ended. Meanwhile it holds the fleet's part
// of loopback.
func Supervise(ctx context.Context, name string) error {
	f, err := Open(name)
	if err != nil {
		return err
	}
	network, err := claimNetwork(f.state.Network)
	if err != nil {
		return fmt.Errorf("the pods' part of loopback is taken: %w", err)
	}
	defer func() { _ = network.Close() }() // nothing is accepted on it
	return supervisor.Run(ctx, f.Dir)
}
