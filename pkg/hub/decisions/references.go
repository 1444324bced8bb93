package decisions

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Subscribe has enqueue called with each pair that must be reconciled: nothing refers to its
// profile any more, which must not be referred to, or something refers to a profile that does
// not exist. enqueue must return at once.
func (d *Decisions) Subscribe(enqueue func(pair types.NamespacedName)) { d.released.Subscribe(enqueue) }

// Refer returns whether a slice refers to a pair's profile, in the cache or by a write of this
// process that the cache does not show yet. It is Unknown until slices are known. Where
// PlacementDecisions are not served, none does.
func (d *Decisions) Refer(ctx context.Context, pair types.NamespacedName) selection.Answer {
	switch referring, known := d.referring(ctx, pair); {
	case !known:
		return selection.Unknown
	case len(referring) > 0:
		return selection.Yes
	default:
		return selection.No
	}
}

// referring returns the Placements whose slices refer to a pair, or are about to. A write is
// forgotten once the cache shows it, so writes are looked up first.
func (d *Decisions) referring(
	ctx context.Context, pair types.NamespacedName,
) (placements []types.NamespacedName, known bool) {
	served, err := kube.IsServed(ctx, d.reader, sigDecisionCRD)
	if !served || !d.started.Load() {
		return nil, err == nil && !served
	}
	for placement, last := range d.unseen.All() {
		if _, found := slices.BinarySearch(last.adding, pair.Name); found && placement.Namespace == pair.Namespace {
			placements = append(placements, placement)
		}
	}
	list, err := d.list(ctx, pair.Namespace, IndexSliceByCluster, pair.Name)
	for i := range list {
		placements = append(placements, d.placementOf(ctx, pair.Namespace, parseName(list[i].Name)))
	}
	return placements, err == nil
}

// begin records that the slices of a Placement are about to refer to more clusters. It reports
// false, and records nothing, if one of these may no longer be referred to. It records them
// before it asks that, and the writer of profiles says that before it asks what refers to them,
// so one of both learns of the other.
func (d *Decisions) begin(ctx context.Context, placement types.NamespacedName, adding []string) bool {
	if len(adding) == 0 {
		return true
	}
	d.unseen.Set(placement, unseen{adding: adding})
	for _, cluster := range adding {
		if d.referable(placement.Namespace, cluster) != selection.Yes {
			d.seen(ctx, placement)
			return false
		}
	}
	return true
}

// seen records that the cache shows what was written. A cluster that was not added because a
// write failed is in no slice that changes, so no event announces that.
func (d *Decisions) seen(ctx context.Context, placement types.NamespacedName) {
	last, _ := d.unseen.Forget(placement)
	d.check(ctx, placement.Namespace, last.adding)
}

func (d *Decisions) referable(namespace, cluster string) selection.Answer {
	return d.opts.Rule.Referable(types.NamespacedName{Namespace: namespace, Name: cluster})
}

// check tells subscribers which of some clusters' profiles are no longer referred to and must
// not be, and reports whether others must not be, either.
func (d *Decisions) check(ctx context.Context, namespace string, clusters []string) (waiting bool) {
	for _, cluster := range clusters {
		pair := types.NamespacedName{Namespace: namespace, Name: cluster}
		switch {
		case d.opts.Rule.Referable(pair) != selection.No:
		case d.Refer(ctx, pair) == selection.No:
			d.released.Notify(pair)
		default:
			waiting = true
		}
	}
	return waiting
}

// askAbout has the pairs reconciled that slices refer to although they have no profile. While
// this addon did not run, it did not check that; and before the slices were known, it did not
// know that they refer to it.
func (d *Decisions) askAbout(ctx context.Context, namespace string, referred map[string]selection.Group) error {
	for cluster := range referred {
		pair := types.NamespacedName{Namespace: namespace, Name: cluster}
		if d.opts.Rule.Referable(pair) != selection.Unknown {
			continue
		}
		profile, err := kube.Get(ctx, d.reader, pair, &inventoryv1alpha1.ClusterProfile{})
		if err != nil {
			return err
		}
		if profile == nil {
			d.released.Notify(pair)
		}
	}
	return nil
}

// follow enqueues the Placements whose slices may gain a reference to a pair's profile, or must
// lose one. After the first pair of all, Placements that choose nothing get a slice, too.
func (d *Decisions) follow(ctx context.Context, pair types.NamespacedName) {
	if !d.started.Load() {
		return // all will be enqueued
	}
	switch d.opts.Rule.Referable(pair) {
	case selection.Yes:
		placements, err := d.opts.Rule.Choosing(ctx, pair)
		if err == nil && d.waiting.Swap(false) {
			placements = append(placements, d.publishing(ctx, "")...)
		}
		for _, placement := range placements {
			d.soon.Enqueue(placement)
		}
	case selection.No:
		placements, _ := d.referring(ctx, pair)
		for _, placement := range placements {
			d.urgent.EnqueueWithPriority(placement, watch.PriorityHigh)
		}
	case selection.Unknown:
	}
}

// mayReferToAny reports whether any profile at all may be referred to. If not, all Placements
// are enqueued when one may be. It asks again after it has said that a Placement waits, because the
// first may have been allowed in between.
func (d *Decisions) mayReferToAny() bool {
	if !d.opts.Rule.AnyReferable() {
		d.waiting.Store(true)
	}
	return d.opts.Rule.AnyReferable()
}
