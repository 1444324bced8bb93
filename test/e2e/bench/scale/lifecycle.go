package scale

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

// writer is a writer of the profiles of a namespace, and the way to start it.
type writer struct {
	name                  string
	bind, editAll, unbind func(ctx context.Context, namespace string) error
}

// rawly is the benchmark itself.
func (b *bench) rawly() writer {
	return writer{name: report.Raw, bind: b.raw.create, editAll: b.raw.editAll, unbind: b.raw.remove}
}

// by returns a program that follows the hub.
func (b *bench) by(name string) writer {
	return writer{
		name: name,
		bind: func(ctx context.Context, namespace string) error {
			return b.hub.Create(ctx, newBinding(namespace, allSet))
		},
		editAll: func(ctx context.Context, _ string) error {
			return simulated.Each(ctx, b.clusters.size(), func(ctx context.Context, i int) error {
				return b.clusters.edit(ctx, i, func(int) {})
			})
		},
		unbind: func(ctx context.Context, namespace string) error {
			return b.hub.Delete(ctx, newBinding(namespace, allSet))
		},
	}
}

func newBinding(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

func (b *bench) createNamespace(ctx context.Context, name string) error {
	return client.IgnoreAlreadyExists(
		b.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// complete counts the profiles of a namespace that show every claim.
func complete(namespace string) func(observe.Key, int) bool {
	return func(key observe.Key, serial int) bool { return key.Namespace == namespace && serial >= 0 }
}

// existing counts all profiles of a namespace.
func existing(namespace string) func(observe.Key, int) bool {
	return func(key observe.Key, _ int) bool { return key.Namespace == namespace }
}

// edited counts the profiles of a namespace that show the next edit of their cluster.
func (b *bench) edited(namespace string) func(observe.Key, int) bool {
	next := map[string]int{}
	for i, name := range b.clusters.names {
		next[name] = b.clusters.serial(i) + 1
	}
	return func(key observe.Key, serial int) bool { return key.Namespace == namespace && serial >= next[key.Name] }
}

// lifecycle measures binding a set, editing every cluster and unbinding the set; before
// that, everything else to be measured of a bound set.
func (b *bench) lifecycle(
	ctx context.Context, w writer, namespace string, round int, more ...func(context.Context) error,
) error {
	n := b.clusters.size()
	if err := b.createNamespace(ctx, namespace); err != nil {
		return err
	}
	steps := []struct {
		scenario string
		do       func(ctx context.Context, namespace string) error
		want     int
		counts   func() func(observe.Key, int) bool
	}{
		{report.Bind, w.bind, n, func() func(observe.Key, int) bool { return complete(namespace) }},
		{report.EditAll, w.editAll, n, func() func(observe.Key, int) bool { return b.edited(namespace) }},
		{report.Unbind, w.unbind, 0, func() func(observe.Key, int) bool { return existing(namespace) }},
	}
	for i, s := range steps {
		if i == len(steps)-1 {
			for _, measured := range more {
				if err := measured(ctx); err != nil {
					return err
				}
			}
		}
		err := b.measure(ctx, s.scenario, w.name, round, n, bound(n), b.untilSeen(namespace, s.do, s.want, s.counts))
		if err != nil {
			return err
		}
	}
	return nil
}

// untilSeen returns a task that does something in a namespace and lasts until a number of
// profiles count.
func (b *bench) untilSeen(
	namespace string, do func(context.Context, string) error, want int, counts func() func(observe.Key, int) bool,
) task {
	return func(ctx context.Context, _ *report.Step) (time.Duration, error) {
		return timed(ctx, b.profiles, want, counts(), func() error { return do(ctx, namespace) })
	}
}

// timed does something and returns how long after its start a number of objects count.
func timed(
	ctx context.Context, board *observe.Board, want int, counts func(observe.Key, int) bool, do func() error,
) (time.Duration, error) {
	wait := board.Expect(want, counts)
	began := time.Now()
	if err := do(); err != nil {
		return time.Since(began), fmt.Errorf("could not be done: %w", err)
	}
	at, err := wait.Until(ctx)
	if err != nil {
		return time.Since(began), err
	}
	return at.Sub(began), nil
}
