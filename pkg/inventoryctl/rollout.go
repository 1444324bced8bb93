package inventoryctl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/rollout"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
)

// leastInterval bounds how often --watch reads the addons of all clusters.
const leastInterval = time.Second

type rolloutOptions struct {
	*options
	watch    bool
	interval time.Duration
}

func newRolloutCommand(o *options) *cobra.Command {
	r := &rolloutOptions{options: o, interval: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Shows the progress of the agents' rollout: clusters by revision and state, and those that failed",
		Long: "Shows the progress of the agents' rollout: clusters by AgentRevision and state, and the names of those on\n" +
			"which it failed. Exit code 1 says that it failed on a cluster, or that it has stood still for half an hour.\n\n" +
			"With --watch it reads the addons repeatedly, and ends when all clusters have their revision.",
		Example: "  kubectl inventory rollout --watch",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) },
	}
	o.addOutput(cmd)
	cmd.Flags().BoolVarP(&r.watch, "watch", "w", false, "repeat until all clusters have their revision")
	cmd.Flags().DurationVar(&r.interval, "interval", r.interval, "how often --watch reads the addons")
	return cmd
}

func (r *rolloutOptions) run(ctx context.Context) error {
	switch {
	case r.interval < leastInterval:
		return fmt.Errorf("--interval: %s is less than %s", r.interval, leastInterval)
	case r.watch && r.format != show.FormatText:
		return errors.New("--watch: choose no --output with it")
	}
	hub, err := r.hub()
	if err != nil {
		return err
	}
	for printed := (rollout.Report{}); ; { // no report equals this one, which has no lists
		report, err := r.read(ctx, hub)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(report, printed) {
			if err := r.print(report); err != nil {
				return err
			}
			printed = report
		}
		switch isLast := !r.watch || report.IsDone(); {
		case isLast && (len(report.Failed) > 0 || report.Stalled):
			return errMissing
		case isLast:
			return nil
		}
		select {
		case <-ctx.Done():
			return advise(ctx.Err(), hub.Host)
		case <-time.After(r.interval):
		}
	}
}

func (r *rolloutOptions) read(ctx context.Context, hub *gather.Hub) (rollout.Report, error) {
	facts, err := hub.Rollout(ctx)
	switch {
	case err != nil:
		return rollout.Report{}, advise(err, hub.Host)
	case facts.HiddenAddons:
		return rollout.Report{}, errors.New("you may not list the ManagedClusterAddOns of all clusters: ask the hub's " +
			"administrator for the rights that " + docsOfRights() + " lists")
	default:
		return facts.Report(r.now()), nil
	}
}

func (r *rolloutOptions) print(report rollout.Report) error {
	switch {
	case r.format != show.FormatText:
		return show.Structured(r.Out, r.format, report)
	case report.Total == 0:
		return printLine(r.ErrOut, "No cluster has the addon: "+
			"clusteradm addon enable --names cluster-inventory --clusters CLUSTER")
	default:
		return show.Rollout(r.Out, report)
	}
}
