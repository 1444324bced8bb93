package decisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

const (
	// eventAction is what the controller did or refrained from.
	eventAction = "PublishDecisions"

	// overtaken is how soon to plan again after something changed during planning.
	overtaken = 10 * time.Millisecond

	// applyFor is for how long a plan is carried out before another one is made: with slow writes of many
	// slices, a cluster may leave meanwhile.
	applyFor = time.Second
)

// Reconciler maintains the slices of one Placement, which the request names.
type Reconciler struct {
	*Decisions
	writer client.Client

	events       *notices.Reporter
	brake        kube.Brake[types.NamespacedName] // by slice
	expectations *kube.Expectations
	failing      kube.Debounce[types.NamespacedName] // by Placement
}

// unseen is what was written and may not be in the cache yet.
type unseen struct {
	slices []string // names
	adding []string // clusters, sorted
}

func newReconciler(d *Decisions, writer client.Client) *Reconciler {
	return &Reconciler{
		Decisions: d, writer: writer,
		events:       notices.NewReporter(d.reader, writer, d.opts.Clock, ControllerName, eventAction),
		expectations: &kube.Expectations{},
	}
}

// Reconcile makes the slices list those chosen clusters that have a profile.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	placement := req.NamespacedName
	state, err := r.opts.Definitions.State(ctx, r.reader, sigDecisionCRD)
	if err != nil || state == watch.Unserved {
		return reconcile.Result{}, err
	}
	o, err := r.observe(ctx, placement)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wait := r.catchUp(ctx, placement, o); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	choice, err := r.opts.Rule.Choice(ctx, placement)
	if err != nil {
		return reconcile.Result{}, err
	}
	writes, again, err := r.plan(ctx, placement, o, choice)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !r.begin(ctx, placement, added(o.current, writes)) {
		return reconcile.Result{RequeueAfter: overtaken}, nil
	}
	rest, err := r.apply(ctx, placement, o, writes)
	wait, reportErr := r.report(ctx, placement, o, choice, err)
	again = kube.Sooner(kube.Sooner(again, choice.Again), wait)
	if rest {
		again = overtaken
	}
	contention := &kube.ContestedError{}
	if errors.As(err, &contention) {
		if contention.First {
			log.FromContext(ctx).Info("Another client keeps changing a PlacementDecision, so it is repaired less often",
				"every", kube.RepairEvery, "error", err.Error())
		}
		return reconcile.Result{RequeueAfter: kube.Sooner(again, contention.Wait)}, nil
	}
	return r.soon.Result(placement, again, cmp.Or(err, reportErr))
}

// observed holds the PlacementDecisions that matter for one Placement.
type observed struct {
	current []slice                                         // ours
	objects map[string]*inventoryv1alpha1.PlacementDecision // ours, also those that are being deleted, by name
	taken   map[string]bool                                 // names that are taken
	foreign []*inventoryv1alpha1.PlacementDecision
}

// observe reads caches. For readers, a slice that a user has deleted and that its finalizers
// hold is gone; it is recreated under another name.
func (r *Reconciler) observe(ctx context.Context, placement types.NamespacedName) (observed, error) {
	o := observed{
		objects: map[string]*inventoryv1alpha1.PlacementDecision{},
		taken:   map[string]bool{},
	}
	named, err := r.list(ctx, placement.Namespace, IndexSliceByBase, baseOf(placement.Name))
	if err != nil {
		return o, err
	}
	for i := range named {
		decision := &named[i]
		o.taken[decision.Name] = true
		if !isOurs(decision) {
			o.foreign = append(o.foreign, decision)
			continue
		}
		o.objects[decision.Name] = decision
		if decision.DeletionTimestamp == nil {
			o.current = append(o.current, observedSlice(decision, placement.Name))
		}
	}
	keyed, err := r.list(ctx, placement.Namespace, IndexForeignByKey, keyOf(placement.Name))
	for i := range keyed {
		if !o.taken[keyed[i].Name] {
			o.foreign = append(o.foreign, &keyed[i])
		}
	}
	return o, err
}

func (d *Decisions) list(
	ctx context.Context, namespace, index, value string,
) ([]inventoryv1alpha1.PlacementDecision, error) {
	list := &inventoryv1alpha1.PlacementDecisionList{}
	matching := client.MatchingFields{index: value}
	if err := d.reader.List(ctx, list, client.InNamespace(namespace), matching, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing PlacementDecisions: %w", err)
	}
	return list.Items, nil
}

// catchUp returns how long to wait for the cache to show the last write.
func (r *Reconciler) catchUp(ctx context.Context, placement types.NamespacedName, o observed) time.Duration {
	last, known := r.unseen.Load(placement)
	if !known {
		return 0
	}
	var wait time.Duration
	for _, name := range last.slices {
		key := types.NamespacedName{Namespace: placement.Namespace, Name: name}
		wait = max(wait, r.expectations.Wait(key, kube.ObjectOrNil(o.objects[name]), r.opts.Clock.Now()))
	}
	if wait == 0 {
		r.seen(ctx, placement)
	}
	return wait
}

// plan returns the necessary writes, and when time alone changes them.
func (r *Reconciler) plan(
	ctx context.Context, placement types.NamespacedName, o observed, choice selection.Choice,
) ([]write, time.Duration, error) {
	if choice.Answer == selection.No {
		writes := make([]write, 0, len(o.current))
		for _, s := range o.current {
			writes = append(writes, write{action: remove, slice: slice{name: s.name}})
		}
		return writes, 0, nil
	}
	present := referred(o.current)
	if err := r.askAbout(ctx, placement.Namespace, present); err != nil {
		return nil, 0, err
	}
	left, again, err := r.opts.Rule.Leaving(ctx, placement, choice, notChosen(present, choice))
	if err != nil {
		return nil, 0, err
	}
	want := desiredClusters(present, choice, left, func(cluster string) selection.Answer {
		return r.referable(placement.Namespace, cluster)
	})
	if len(o.current) == 0 && !mayBegin(choice, want, r.mayReferToAny()) {
		return nil, again, nil
	}
	base := baseOf(placement.Name)
	number := func(n int) string { return nameOf(base, n) }
	return desiredWrites(o.current, want, number, o.taken), again, nil
}

// added returns, sorted, the clusters that writes add to those that slices refer to.
func added(current []slice, writes []write) []string {
	before := referred(current)
	clusters := map[string]struct{}{}
	for _, w := range writes {
		for _, cluster := range w.slice.clusters {
			if _, ok := before[cluster]; !ok {
				clusters[cluster] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(clusters))
}

// wrote records that the cache must show a slice, or no longer show it.
func (r *Reconciler) wrote(placement types.NamespacedName, name string) {
	r.unseen.Update(placement, func(last unseen, _ bool) (unseen, bool) {
		last.slices = append(slices.Clip(last.slices), name)
		return last, true
	})
}

// apply sends the writes one after the other. After a failure, it sends only those that
// move no cluster out of a slice: the failed one may have been the destination. It returns
// the first failure. If all goes well but slowly, it leaves the rest to the next plan.
func (r *Reconciler) apply(
	ctx context.Context, placement types.NamespacedName, o observed, writes []write,
) (rest bool, failed error) {
	began := r.opts.Clock.Now()
	for i, w := range writes {
		if failed != nil && movesOut(o.objects[w.slice.name], w, writes) {
			continue
		}
		if err := r.send(ctx, placement, o, w); err != nil && failed == nil {
			failed = err
		}
		switch {
		case i+1 == len(writes):
		case ctx.Err() != nil:
			return false, ctx.Err()
		case failed == nil && kube.TimeLeft(began, applyFor, r.opts.Clock.Now()) == 0:
			return true, nil
		}
	}
	return false, failed
}

// movesOut reports whether a write removes a cluster from a slice that another slice refers
// to.
func movesOut(before *inventoryv1alpha1.PlacementDecision, w write, all []write) bool {
	if before == nil {
		return false
	}
	return slices.ContainsFunc(referredClusters(before), func(cluster string) bool {
		return !slices.Contains(w.slice.clusters, cluster) && slices.ContainsFunc(all, func(other write) bool {
			return other.slice.name != w.slice.name && slices.Contains(other.slice.clusters, cluster)
		})
	})
}

// verbs say in errors what a write does.
var verbs = [...]string{create: "creating", update: "patching", remove: "deleting"}

// send makes one write, unless another client keeps changing the slice.
func (r *Reconciler) send(ctx context.Context, placement types.NamespacedName, o observed, w write) error {
	key := types.NamespacedName{Namespace: placement.Namespace, Name: w.slice.name}
	current, before, what := o.objects[key.Name], "", kube.Rewrite
	if current != nil {
		before = ownPart(current)
	}
	if w.action == remove || current != nil && losesAny(current, w.slice) {
		what = kube.Remove
	}
	err := r.brake.Check(key, what, before, r.opts.Clock.Now())
	var written *inventoryv1alpha1.PlacementDecision
	if err == nil {
		written, err = r.write(ctx, placement, current, w)
	}
	if apierrors.IsConflict(err) && current != nil {
		r.brake.Lost(key, what, before, r.opts.Clock.Now())
		r.expectations.Conflicted(current, r.opts.Clock.Now())
		r.wrote(placement, key.Name) // the next plan waits for the cache
	}
	if err != nil {
		return fmt.Errorf("%s PlacementDecision %s: %w", verbs[w.action], key.Name, err)
	}
	if written == nil {
		r.brake.Wrote(key, what, before, "", r.opts.Clock.Now())
		r.expectations.Deleted(current, r.opts.Clock.Now())
	} else {
		r.brake.Wrote(key, what, before, partWritten(written, placement.Name, w.slice), r.opts.Clock.Now())
		r.expectations.Wrote(written, r.opts.Clock.Now())
		o.objects[key.Name] = written
	}
	r.wrote(placement, key.Name)
	return nil
}

// write returns what the API server has made of a write; nil after a removal, which happens only if the slice
// is still exactly as observed.
func (r *Reconciler) write(
	ctx context.Context, placement types.NamespacedName, current *inventoryv1alpha1.PlacementDecision, w write,
) (written *inventoryv1alpha1.PlacementDecision, err error) {
	logger := log.FromContext(ctx).WithValues("slice", w.slice.name, "references", len(w.slice.clusters))
	switch w.action {
	case create:
		written = desiredDecision(placement.Namespace, placement.Name, w.slice)
		if err = r.writer.Create(ctx, written, client.FieldOwner(ControllerName)); err == nil {
			logger.Info("Created PlacementDecision")
		}
	case update:
		var patch client.Patch
		patch, err = kube.MergePatch(current.ResourceVersion, desiredChanges(current, placement.Name, w.slice))
		if err != nil {
			return nil, err
		}
		written = &inventoryv1alpha1.PlacementDecision{}
		written.Namespace, written.Name = current.Namespace, current.Name
		if err = r.writer.Patch(ctx, written, patch, client.FieldOwner(ControllerName)); err == nil {
			logger.V(1).Info("Patched PlacementDecision")
		}
	default:
		exactly := client.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion}
		if err = kube.IgnoreGone(r.writer.Delete(ctx, current.DeepCopy(), exactly)); err == nil {
			logger.Info("Deleted PlacementDecision")
		}
	}
	return written, err
}

// report says on the Placement what its owner must know. wait is when there is more to say.
func (r *Reconciler) report(
	ctx context.Context, placement types.NamespacedName, o observed, choice selection.Choice, err error,
) (wait time.Duration, reportErr error) {
	if err == nil {
		r.failing.Over(placement)
	}
	var current []notices.Notice
	contention := &kube.ContestedError{}
	switch {
	case choice.Placement == nil, apierrors.IsConflict(err):
	case errors.As(err, &contention):
		current = append(current, contestedNotice(placement.Name, err))
	case kube.IsRefusal(err), err != nil && r.failing.Lasted(placement, kube.LastingAfter, r.opts.Clock.Now()):
		current = append(current, refusedNotice(placement.Name, err))
	}
	if notice, ok := foreignNotice(placement.Name, o.foreign); ok &&
		choice.Placement != nil && choice.Answer == selection.Yes {
		current = append(current, notice)
	}
	return r.events.Report(ctx, placement, current)
}
