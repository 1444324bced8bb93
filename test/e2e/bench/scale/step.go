package scale

import (
	"context"
	"fmt"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
)

// restLimit is how long processes may take to settle after a step. Only the clusters
// themselves cause Open Cluster Management more work: after creating them, bound applies.
const restLimit = 3 * time.Minute

// restless are the processes that a step waits for in the end: writers, and readers of what
// was written. The API server never settles.
var restless = []string{
	report.Manager, report.GateProcess, "webhooks", "placement", "addon-manager", syncerName,
}

// bound is how long a step may take: much longer than the slowest writer needs.
func bound(objects int) time.Duration {
	return time.Minute + time.Duration(objects)*300*time.Millisecond
}

// task is the action of a step. It returns how long that took, and may add notes.
type task func(ctx context.Context, step *report.Step) (time.Duration, error)

// unmeasured runs an action between steps, and waits until all processes have settled.
func (b *bench) unmeasured(ctx context.Context, do func(ctx context.Context) error) error {
	if err := do(ctx); err != nil {
		return err
	}
	return b.rest(ctx, restLimit)
}

// measure runs a task and records its costs, until all processes have settled. It returns
// an error only if the run cannot continue; a failed task is recorded.
func (b *bench) measure(
	ctx context.Context, scenario, writer string, round, objects int, limit time.Duration, do task,
) error {
	step := report.Step{Scenario: scenario, Writer: writer, Round: round, Objects: objects, Outcome: report.Done}
	measurement, err := b.meter.Begin(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	took, failed := do(bounded, &step)
	cancel()
	step.Seconds = took.Seconds()
	if failed != nil {
		step.Outcome = failed.Error()
	}
	if err := b.rest(ctx, restLimit); err != nil {
		return err
	}
	cost, err := measurement.End(ctx)
	if err != nil {
		return err
	}
	step.Requests, step.Bytes, step.CPU = cost.Requests, cost.Bytes, cost.CPU
	step.Peak, step.Settled = cost.Peak, cost.Settled
	b.run.Steps = append(b.run.Steps, step)
	b.say("%-32s %-13s %8.2f s   %s", scenario, writer, step.Seconds, step.Outcome)
	return ctx.Err()
}

// rest waits until all processes have settled. A process that does not is reported, and the
// run continues.
func (b *bench) rest(ctx context.Context, limit time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := b.meter.Settle(bounded, restless...); err != nil {
		b.say("%v", err)
	}
	return ctx.Err()
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.o.Out, "%6.0f s  "+format+"\n", append([]any{time.Since(b.run.Began).Seconds()}, args...)...)
}
