package scale

import (
	"context"
	"fmt"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

const (
	// queues is how many namespaces are bound at once for the queue of first writes: ten
	// writes of each cluster, so 10,000 of 1000.
	queues = 10
	// revocations is how many are measured at most while the queue lasts.
	revocations = 200
	// revocationPause is the pause between two.
	revocationPause = 100 * time.Millisecond
	// revocationLimit is how long one may take before it counts as lost.
	revocationLimit = 30 * time.Second
)

// copier is a program that copies tokens.
type copier struct {
	name string
	// first opens an account for copying, and what else the first copy needs.
	first func(ctx context.Context, i int) error
	// next rotates a token, and what else its copy needs.
	next func(ctx context.Context, i int) error
}

func (b *bench) copiesRawly(namespace string) copier {
	return copier{
		name: report.Raw,
		first: func(ctx context.Context, i int) error {
			return b.hub.Create(ctx, b.accounts[i].Copied(namespace))
		},
		next: func(ctx context.Context, i int) error {
			if err := b.accounts[i].Rotate(ctx); err != nil {
				return err
			}
			return b.hub.Update(ctx, b.accounts[i].Copied(namespace))
		},
	}
}

func (b *bench) copiesBy(name, namespace string) copier {
	return copier{
		name:  name,
		first: func(ctx context.Context, i int) error { return b.accounts[i].Share(ctx, namespace) },
		next:  func(ctx context.Context, i int) error { return b.accounts[i].Rotate(ctx) },
	}
}

// copies measures the first copies of all tokens into a namespace, then the rotation of all
// tokens.
func (b *bench) copies(ctx context.Context, c copier, namespace string) error {
	n := b.clusters.size()
	steps := []struct {
		scenario string
		do       func(ctx context.Context, i int) error
		ahead    int
	}{{report.FirstCopies, c.first, 0}, {report.Rotation, c.next, 1}}
	for _, s := range steps {
		err := b.measure(ctx, s.scenario, c.name, 1, n, bound(n),
			func(ctx context.Context, _ *report.Step) (time.Duration, error) {
				return timed(ctx, b.secrets, n, b.copiedWith(namespace, s.ahead), func() error {
					return simulated.Each(ctx, n, s.do)
				})
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// copiedWith counts the copies that hold the present token, or a later one.
func (b *bench) copiedWith(namespace string, ahead int) func(observe.Key, int) bool {
	want := map[string]int{}
	for i, account := range b.accounts {
		want[simulated.CopyName(b.clusters.names[i])] = account.Serial() + ahead
	}
	return func(key observe.Key, serial int) bool {
		least, concerns := want[key.Name]
		return concerns && key.Namespace == namespace && serial >= least
	}
}

// revoke measures how long withdrawals take while ten first writes of each cluster are
// queued: the label of one account after the other is removed.
func (b *bench) revoke(ctx context.Context, namespace string) error {
	var names []string
	for k := range queues {
		names = append(names, fmt.Sprintf("bench-queue-%d", k))
		if err := b.createNamespace(ctx, names[k]); err != nil {
			return err
		}
	}
	n := b.clusters.size()
	queued := func(key observe.Key, serial int) bool {
		return serial >= 0 && len(key.Namespace) > len("bench-queue") && key.Namespace[:len("bench-queue")] == "bench-queue"
	}
	return b.measure(ctx, report.Revocation, report.Addon, 1, n*queues, bound(n*queues),
		func(ctx context.Context, step *report.Step) (time.Duration, error) {
			all := b.profiles.Expect(n*queues, queued)
			began := time.Now()
			for _, name := range names {
				if err := b.hub.Create(ctx, newBinding(name, allSet)); err != nil {
					return 0, err
				}
			}
			var sample stats.Sample
			lost, left := 0, 0
			for i := range min(n, revocations) {
				waiting := n*queues - b.profiles.Count(queued)
				if waiting == 0 {
					break
				}
				left = waiting
				took, err := b.revokeOne(ctx, namespace, i)
				switch {
				case ctx.Err() != nil:
					return time.Since(began), ctx.Err()
				case err != nil:
					lost++
				default:
					sample = append(sample, took)
				}
			}
			step.Latency = report.LatencyOf(sample, lost)
			step.Note = fmt.Sprintf("%d revocations, behind %d to %d first writes", len(sample)+lost, n*queues, left)
			at, err := all.Until(ctx)
			if err != nil {
				return time.Since(began), err
			}
			return at.Sub(began), nil
		})
}

func (b *bench) revokeOne(ctx context.Context, namespace string, i int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, revocationLimit)
	defer cancel()
	gone := observe.Key{Namespace: namespace, Name: simulated.CopyName(b.clusters.names[i])}
	took, err := timed(ctx, b.secrets, 0, func(key observe.Key, _ int) bool { return key == gone },
		func() error { return b.accounts.revoke(ctx, i) })
	if err != nil {
		return 0, err
	}
	pause := time.NewTimer(revocationPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return took, nil
}
