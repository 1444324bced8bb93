package scale

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

// enable measures enabling the addon on every cluster, until each has its ManifestWork. The
// works are reported as applied at once.
func (b *bench) enable(ctx context.Context) error {
	n := b.clusters.size()
	return b.measure(ctx, report.Enable, report.Addon, 1, n, bound(n),
		func(ctx context.Context, _ *report.Step) (time.Duration, error) {
			return timed(ctx, b.works, n, func(observe.Key, int) bool { return true }, func() error {
				return simulated.Each(ctx, n, func(ctx context.Context, i int) error {
					return b.hub.Create(ctx, &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
						Namespace: b.clusters.names[i], Name: "cluster-inventory",
					}})
				})
			})
		})
}

// second binds the set to one more namespace, whose profiles stay.
func (b *bench) second(ctx context.Context, namespace string) error {
	if err := b.createNamespace(ctx, namespace); err != nil {
		return err
	}
	n := b.clusters.size()
	return b.measure(ctx, report.Second, report.Addon, 1, n, bound(n),
		b.untilSeen(namespace, b.by(report.Addon).bind, n,
			func() func(observe.Key, int) bool { return complete(namespace) }))
}

// restart measures a start of the manager with nothing to do, until it has settled. The API server's CPU time
// differs by a third and more from one round to the next, because its garbage is collected in some of them.
func (b *bench) restart(ctx context.Context, round int) error {
	if err := b.unmeasured(ctx, b.programs.stopAddon); err != nil {
		return err
	}
	n := b.clusters.size()
	return b.measure(ctx, report.Restart, report.Addon, round, n, bound(n),
		func(ctx context.Context, step *report.Step) (time.Duration, error) {
			step.Note = "until the manager has come to rest"
			began := time.Now()
			if err := b.programs.startAddon(ctx); err != nil {
				return time.Since(began), err
			}
			at, err := b.meter.Settle(ctx, report.Manager)
			if err != nil {
				return time.Since(began), err
			}
			return at.Sub(began), nil
		})
}

// swap measures how long a namespace that is bound to one half of the fleet takes to show
// the other, after all clusters changed places. The number of clusters in each half stays
// the same.
func (b *bench) swap(ctx context.Context, writer, namespace string) error {
	if err := b.createNamespace(ctx, namespace); err != nil {
		return err
	}
	const chosen = 0
	before, after := b.clusters.inHalf(chosen), b.clusters.inHalf(1-chosen)
	binding := newBinding(namespace, halfSet(halves[chosen]))
	err := b.unmeasured(ctx, func(ctx context.Context) error {
		if err := b.hub.Create(ctx, binding); err != nil {
			return err
		}
		ready, cancel := context.WithTimeout(ctx, bound(b.clusters.size()))
		defer cancel()
		_, err := b.profiles.Expect(len(before), complete(namespace)).Until(ready)
		return err
	})
	if err != nil {
		return fmt.Errorf("before the swap: %w", err)
	}
	err = b.measure(ctx, report.Swap, writer, 1, b.clusters.size(), bound(b.clusters.size()),
		func(ctx context.Context, _ *report.Step) (time.Duration, error) {
			gone := b.profiles.Expect(0, func(key observe.Key, _ int) bool {
				return key.Namespace == namespace && before[key.Name]
			})
			began := time.Now()
			took, err := timed(ctx, b.profiles, len(after), func(key observe.Key, serial int) bool {
				return key.Namespace == namespace && after[key.Name] && serial >= 0
			}, func() error { return b.clusters.swap(ctx) })
			if err != nil {
				return took, fmt.Errorf("who came is not seen: %w", err)
			}
			at, err := gone.Until(ctx)
			if err != nil {
				return time.Since(began), fmt.Errorf("who went is still seen: %w", err)
			}
			return max(took, at.Sub(began)), nil
		})
	if err != nil {
		return err
	}
	return b.unmeasured(ctx, func(ctx context.Context) error { return b.hub.Delete(ctx, binding) })
}
