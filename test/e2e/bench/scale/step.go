package scale

import (
	"context"
	"fmt"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
)

// restLimit is how long everybody may take to come to rest after a step. Only the clusters
// themselves give Open Cluster Management more to do: after they are made, bound counts.
const restLimit = 3 * time.Minute

// restless are the processes that a step waits for in the end: who writes, and who looks
// at what was written. The API server is never at rest.
var restless = []string{
	report.Manager, report.GateProcess, "webhooks", "placement", "addon-manager", syncerName,
}

// bound is how long a step may take: much longer than the slowest writer needs.
func bound(objects int) time.Duration {
	return time.Minute + time.Duration(objects)*300*time.Millisecond
}

// task is what a step does. It returns how long that took, and may note more.
type task func(ctx context.Context, step *report.Step) (time.Duration, error)

// unmeasured does what lies between steps, and waits until nobody is busy.
func (b *bench) unmeasured(ctx context.Context, do func(ctx context.Context) error) error {
	if err := do(ctx); err != nil {
		return err
	}
	return b.rest(ctx, restLimit)
}

// measure does something and notes its costs, until nobody is busy. It returns an error only when the run cannot
// go on; a task that fails is noted.
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

// rest waits until nobody is busy. Somebody who does not come to rest is told of, and the
// run goes on.
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
