package scale

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

const (
	// editRate is how many edits a second reach the fleet.
	editRate = 100
	// inFlight is how many edits may wait for the API server. Beyond that, edits start
	// late, and the report shows the actual number.
	inFlight = 64
	// flapRate is how often a second one cluster changes while others are edited.
	flapRate = 50
	// besideRate is how many of the others are edited a second meanwhile.
	besideRate = 10
	// lateLimit is how long after the last edit the others may become visible.
	lateLimit = 15 * time.Second
)

// stream edits clusters, one after another, at a rate that does not depend on any observer,
// and returns how many edits it started.
func (b *bench) stream(
	ctx context.Context, rate int, length time.Duration, edit func(ctx context.Context, n int) error,
) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	over := time.NewTimer(length)
	defer over.Stop()
	for begun := 0; ; begun++ {
		select {
		case <-ctx.Done():
			return begun, group.Wait()
		case <-over.C:
			return begun, group.Wait()
		case <-ticker.C:
			group.Go(func() error { return edit(ctx, begun) })
		}
	}
}

// noted edits a cluster, and makes the boards record when the cluster and a namespace show
// it.
func (b *bench) noted(ctx context.Context, namespace string, i int) error {
	return b.clusters.edit(ctx, i, func(serial int) {
		b.managed.Editing(observe.Key{Name: b.clusters.names[i]}, serial)
		b.profiles.Editing(observe.Key{Namespace: namespace, Name: b.clusters.names[i]}, serial)
	})
}

// editStream measures how long edits at a rate take to become visible.
func (b *bench) editStream(ctx context.Context, writer, namespace string, length time.Duration) error {
	want := int(length.Seconds()) * editRate
	return b.measure(ctx, report.EditStream, writer, 1, want, length+time.Minute,
		func(ctx context.Context, step *report.Step) (time.Duration, error) {
			return b.streamed(ctx, step, editRate, length, func(ctx context.Context, n int) error {
				return b.noted(ctx, namespace, n%b.clusters.size())
			})
		})
}

// flap measures the same for some clusters while another one changes all the time.
func (b *bench) flap(ctx context.Context, writer, namespace string, length time.Duration) error {
	want := int(length.Seconds()) * besideRate
	return b.measure(ctx, report.Flap, writer, 1, want, length+time.Minute,
		func(ctx context.Context, step *report.Step) (time.Duration, error) {
			step.Note = fmt.Sprintf("one cluster changes %d times a second", flapRate)
			flapping := make(chan error, 1)
			go func() {
				_, err := b.stream(ctx, flapRate, length, func(ctx context.Context, _ int) error {
					return b.clusters.edit(ctx, 0, func(int) {})
				})
				flapping <- err
			}()
			took, err := b.streamed(ctx, step, besideRate, length, func(ctx context.Context, n int) error {
				return b.noted(ctx, namespace, 1+n%(b.clusters.size()-1))
			})
			if flapErr := <-flapping; err == nil {
				err = flapErr
			}
			return took, err
		})
}

// streamed runs a stream and records the latencies.
func (b *bench) streamed(
	ctx context.Context, step *report.Step, rate int, length time.Duration, edit func(context.Context, int) error,
) (time.Duration, error) {
	b.profiles.Edits() // forgets
	b.managed.Edits()
	began := time.Now()
	begun, err := b.stream(ctx, rate, length, edit)
	step.Rate = float64(begun) / length.Seconds()
	if err != nil {
		return time.Since(began), fmt.Errorf("after %d edits: %w", begun, err)
	}
	late, cancel := context.WithTimeout(ctx, lateLimit)
	defer cancel()
	// Edits that do not become visible are reported as such.
	_ = await.Until(late, "the last edits", 20*time.Millisecond, func(context.Context) (bool, error) {
		return b.profiles.PendingEdits() == 0, nil
	})
	took := time.Since(began)
	seen, lost := b.profiles.Edits()
	step.Objects, step.Latency = begun, report.LatencyOf(seen, lost)
	step.Floor = report.LatencyOf(b.managed.Edits())
	return took, nil
}
