package placement

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/witness"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

// removalLimit is how long the parts of a removed cluster may stay.
const removalLimit = 4 * time.Minute

// removal removes a cluster, or all of them, and brings it back.
type removal struct {
	what string
	// of is the cluster that is removed in a round; nil means all.
	of           func(round int) string
	remove, back func(ctx context.Context, cluster string) error
	// expect changes what is expected while the cluster is removed, and back.
	expect func(cluster string, removed bool)
}

// time measures a removal, in several rounds.
func (b *bench) time(ctx context.Context, r removal) error {
	result := Removal{What: r.what}
	for round := range b.o.Rounds {
		cluster, gone := "", b.now.profilesOf()
		if r.of != nil {
			cluster = r.of(round)
			gone = setOf(cluster)
		}
		referred := b.now.published != nil
		began := time.Now()
		if err := r.remove(ctx, cluster); err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
		r.expect(cluster, true)
		parts := []struct {
			log    *witness.Log
			into   func(time.Duration)
			leaves bool
		}{
			{b.seen.Profiles, func(d time.Duration) { result.Profiles = append(result.Profiles, d) }, true},
			{b.seen.Copies, func(d time.Duration) { result.Copies = append(result.Copies, d) }, true},
			{b.seen.References, func(d time.Duration) { result.References = append(result.References, d) }, referred},
		}
		for _, part := range parts {
			if !part.leaves {
				continue
			}
			took, err := withdrawn(ctx, part.log, began, gone)
			if err != nil {
				return fmt.Errorf("%s: %w", r.what, err)
			}
			part.into(took)
		}
		if err := b.settle(ctx); err != nil {
			b.say("%s: %v", r.what, err)
		}
		if err := r.back(ctx, cluster); err != nil {
			return fmt.Errorf("%s, and back: %w", r.what, err)
		}
		r.expect(cluster, false)
		if err := b.ready(ctx); err != nil {
			return fmt.Errorf("%s, and back: %w", r.what, err)
		}
	}
	b.result.Removals = append(b.result.Removals, result)
	b.say("%-60s profile %s; reference %s; copy %s", r.what, both(result.Profiles), both(result.References),
		both(result.Copies))
	return nil
}

// withdrawn waits until all of these are away, and returns how long after began that was.
func withdrawn(ctx context.Context, log *witness.Log, began time.Time, all map[string]bool) (time.Duration, error) {
	var took time.Duration
	err := await.Success(ctx, "a withdrawal", removalLimit, lookEvery, func(context.Context) error {
		left, last := len(all), began
		for _, absence := range log.Since(began, all) {
			if absence.Until.IsZero() {
				left--
				if absence.From.After(last) {
					last = absence.From
				}
			}
		}
		if left > 0 {
			return fmt.Errorf("%d are still there", left)
		}
		took = last.Sub(began)
		return nil
	})
	return took, err
}

// leaving removes a cluster from a Placement by its label.
func (b *bench) leaving(what, label string, first int, chosen map[string]bool) removal {
	return removal{
		what:   what,
		of:     func(round int) string { return b.names[first+round] },
		remove: func(ctx context.Context, cluster string) error { return b.label(ctx, label, false, cluster) },
		back:   func(ctx context.Context, cluster string) error { return b.label(ctx, label, true, cluster) },
		expect: func(cluster string, removed bool) {
			if removed {
				delete(chosen, cluster)
			} else {
				chosen[cluster] = true
			}
		},
	}
}

// unbinding unbinds the set from the consumer's namespace.
func (b *bench) unbinding() removal {
	return removal{
		what:   "the set is unbound from the namespace (until the last)",
		remove: func(ctx context.Context, _ string) error { return b.hub.Delete(ctx, binding()) },
		back:   func(ctx context.Context, _ string) error { return b.hub.Create(ctx, binding()) },
		expect: func(_ string, removed bool) { b.now.unbound = removed },
	}
}

// refused has the hub refuse a cluster.
func (b *bench) refused(first int) removal {
	accept := func(ctx context.Context, cluster string, yes bool) error {
		patch := fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%t}}`, yes)
		object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
		return b.hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	}
	return removal{
		what:   "hubAcceptsClient becomes false",
		of:     func(round int) string { return b.names[first+round] },
		remove: func(ctx context.Context, cluster string) error { return accept(ctx, cluster, false) },
		back:   func(ctx context.Context, cluster string) error { return accept(ctx, cluster, true) },
		expect: func(cluster string, removed bool) { b.now.without = map[string]bool{cluster: removed} },
	}
}

// installRemovals removes clusters while the addon is installed by Placements, then under
// Manual.
func (b *bench) installRemovals(ctx context.Context) error {
	if err := b.enable(ctx, b.names[:small]); err != nil {
		return err
	}
	const leaves = "a cluster leaves the install Placement"
	err := b.time(ctx, b.leaving(leaves+" of one slice", enabledLabel, small/2, b.now.enabled))
	if err != nil {
		return err
	}
	if err := b.toInstall(ctx); err != nil {
		return err
	}
	for _, r := range []removal{
		b.leaving(leaves+" of several slices, in a slice's middle", enabledLabel, slice/2, b.now.enabled),
		b.leaving(leaves+" of several slices, the first slice's last", enabledLabel, slice-1, b.now.enabled),
		b.refused(slice / 3),
		b.unbinding(),
	} {
		if err := b.time(ctx, r); err != nil {
			return err
		}
	}
	if err := b.toManual(ctx); err != nil {
		return err
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	return b.time(ctx, removal{
		what:   "an addon is deleted under Manual",
		of:     func(round int) string { return b.names[slice/2+round] },
		remove: func(ctx context.Context, cluster string) error { return b.hub.Delete(ctx, addonOf(cluster)) },
		back:   func(ctx context.Context, cluster string) error { return b.hub.Create(ctx, addonOf(cluster)) },
		expect: func(cluster string, removed bool) {
			if removed {
				delete(b.now.manual, cluster)
			} else {
				b.now.manual[cluster] = true
			}
		},
	})
}

// publishedRemovals removes clusters from a publishing Placement, first of one slice.
func (b *bench) publishedRemovals(ctx context.Context) error {
	const leaves = "a cluster leaves the publishing Placement"
	if err := b.publish(ctx, b.names[:small]); err != nil {
		return err
	}
	err := b.time(ctx, b.leaving(leaves+" of one slice", publishedLabel, small/2, b.now.published))
	if err != nil {
		return err
	}
	if err := b.publish(ctx, b.names); err != nil {
		return err
	}
	for _, r := range []removal{
		b.leaving(leaves+" of several slices, in a slice's middle", publishedLabel, slice/2, b.now.published),
		b.leaving(leaves+" of several slices, the first slice's last", publishedLabel, slice-1, b.now.published),
	} {
		if err := b.time(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
