// Command bench prints, on a running fleet that has the addon, how long a
// property's edit takes to reach its ClusterProfile ("latency"), or how long a copied
// token takes to follow its account ("credentials").
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

func main() {
	name := flag.String("fleet", "default", "name of the fleet")
	cluster := flag.String("cluster", "cluster1", "the spoke whose property is edited")
	changes := flag.Int("n", 200, "changes of each kind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, flag.Arg(0), *name, *cluster, *changes)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report is what every benchmark ends with.
type report interface{ Print(out io.Writer) }

func run(ctx context.Context, what, name, cluster string, changes int) error {
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
	var result report
	switch what {
	case "latency":
		result, err = bench.Latency(ctx, hub, spoke, cluster, changes)
	case "credentials":
		cfg, configErr := f.Hub()
		if configErr != nil {
			return configErr
		}
		result, err = bench.Credentials(ctx, hub, cfg.CAData, changes)
	default:
		err = fmt.Errorf("measure what? latency or credentials, not %q", what)
	}
	if err != nil {
		return err
	}
	result.Print(os.Stdout)
	return nil
}
