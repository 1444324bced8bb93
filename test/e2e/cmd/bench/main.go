// Command bench prints, on a running fleet that has the addon, how long a
// property's edit takes to reach its ClusterProfile ("latency"), how long a copied
// token takes to follow its account ("credentials"), how much memory an agent with many
// properties needs ("agent"), what a fleet of many simulated clusters costs ("scale"), or
// what such clusters lose while Placements keep choosing them ("placement").
// With "report" and the files that "scale" wrote it prints these as tables, and draws
// plots; this needs no fleet.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/placement"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// options are the flags.
type options struct {
	fleet, cluster, parts, commit, out, plots string
	n, pairs, rounds                          int
	stream                                    time.Duration
}

func main() {
	o := options{}
	flag.StringVar(&o.fleet, "fleet", "default", "name of the fleet")
	flag.StringVar(&o.cluster, "cluster", "cluster1", "the spoke whose property is edited")
	flag.IntVar(&o.n, "n", 200, "changes of each kind; for agent, properties; for scale and placement, clusters")
	flag.IntVar(&o.pairs, "pairs", 5, "scale: how often the raw writer and the addon take turns")
	flag.IntVar(&o.rounds, "rounds", 5, "placement: how often each removal is measured")
	flag.DurationVar(&o.stream, "stream", time.Minute, "scale: how long edits come at a rate")
	flag.StringVar(&o.parts, "parts", "",
		"scale: what to measure besides enabling, some of "+strings.Join(scale.Parts, ",")+
			"; placement: some of "+strings.Join(placement.Parts, ",")+"; default all")
	flag.StringVar(&o.commit, "commit", "", "scale: what is measured")
	flag.StringVar(&o.out, "out", "", "scale: file for the results, in JSON")
	flag.StringVar(&o.plots, "plots", "", "report: folder for the plots")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, flag.Arg(0), o, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, what string, o options, args []string) error {
	if what == "report" {
		return show(o.plots, args[1:])
	}
	f, err := fleet.Open(o.fleet)
	if err != nil {
		return err
	}
	switch what {
	case "scale":
		return atScale(ctx, f, o)
	case "placement":
		return placed(ctx, f, o)
	}
	return changes(ctx, what, f, o)
}

// show prints and draws earlier results.
func show(plots string, files []string) error {
	runs, err := report.Read(files...)
	if err != nil {
		return err
	}
	report.Markdown(os.Stdout, runs)
	if plots == "" {
		return nil
	}
	return report.Plots(plots, runs)
}

func atScale(ctx context.Context, f *fleet.Fleet, o options) error {
	run, err := scale.Run(ctx, f, scale.Options{
		Clusters: o.n, Pairs: o.pairs, Stream: o.stream, Parts: strings.FieldsFunc(o.parts, isComma),
		Commit: o.commit, Out: os.Stderr,
	})
	if run == nil {
		return err
	}
	report.Markdown(os.Stdout, []report.Run{*run})
	if o.out != "" {
		err = errors.Join(err, run.Write(o.out))
	}
	return err
}

func placed(ctx context.Context, f *fleet.Fleet, o options) error {
	result, err := placement.Run(ctx, f, placement.Options{
		Clusters: o.n, Parts: strings.FieldsFunc(o.parts, isComma), Rounds: o.rounds, Out: os.Stderr,
	})
	if result != nil {
		result.Print(os.Stdout)
	}
	return err
}

func isComma(r rune) bool { return r == ',' }

// table is the result of the benchmarks of single changes.
type table interface{ Print(out io.Writer) }

func changes(ctx context.Context, what string, f *fleet.Fleet, o options) error {
	hub, err := f.Client(fleet.HubName)
	if err != nil {
		return err
	}
	var result table
	switch what {
	case "latency":
		spoke, clientErr := f.Client(o.cluster)
		if clientErr != nil {
			return clientErr
		}
		result, err = bench.Latency(ctx, hub, spoke, o.cluster, o.n)
	case "credentials":
		cfg, configErr := f.Hub()
		if configErr != nil {
			return configErr
		}
		result, err = bench.Credentials(ctx, hub, cfg.CAData, o.n)
	case "agent":
		result, err = bench.Agent(ctx, f, o.cluster, o.n)
	default:
		err = fmt.Errorf("measure what? latency, credentials, agent, scale or placement, not %q", what)
	}
	if err != nil {
		return err
	}
	result.Print(os.Stdout)
	return nil
}
