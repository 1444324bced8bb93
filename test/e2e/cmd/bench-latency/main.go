// Command bench-latency prints how long a property's edit takes to reach its
// ClusterProfile on a running fleet that has the addon.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/fleet"
)

func main() {
	name := flag.String("fleet", "default", "name of the fleet")
	cluster := flag.String("cluster", "cluster1", "the spoke whose property is edited")
	edits := flag.Int("n", 200, "edits of each kind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *name, *cluster, *edits)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-latency:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, cluster string, edits int) error {
	f, err := fleet.Open(name)
	if err != nil {
		return err
	}
	hub, err := f.Client(fleet.HubName)
	if err != nil {
		return err
	}
	spoke, err := f.Client(cluster)
	if err != nil {
		return err
	}
	result, err := bench.Latency(ctx, hub, spoke, cluster, edits)
	if err != nil {
		return err
	}
	result.Print(os.Stdout)
	return nil
}
