package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

const (
	// maxErrorBytes bounds how much of an API server's error messages repeat.
	maxErrorBytes = 300

	// referenceWait is the longest that a profile's removal waits until nothing refers to it any
	// more. Users who can make writes of references fail must not keep it alive; copies of
	// tokens do not wait at all.
	referenceWait = 3 * time.Second

	// heldBackAfter is for how long changes of a profile must have had to wait for its budget,
	// one after the other, before that is reported.
	heldBackAfter = time.Minute
)

// Reconciler maintains the profile of one pair: the request's namespace and, as its name,
// the cluster.
type Reconciler struct {
	opts   Options
	writer client.Client

	outcomes     *report.Outcomes
	expectations kube.Expectations
	brake        kube.Brake[types.NamespacedName] // by pair; repairs, and budgets
	members      *members
	failing      kube.Debounce[types.NamespacedName] // by pair
	missing      kube.Debounce[types.NamespacedName] // pairs whose profile cannot be created
	leaving      kube.Debounce[types.NamespacedName] // pairs whose profile waits for its references

	// freed, if not nil, is called with a cluster and member ids that others may now have.
	freed func(cluster string, ids ...string)
}

func newReconciler(writer client.Client, opts Options) *Reconciler {
	r := &Reconciler{
		opts: opts, writer: writer, outcomes: report.NewOutcomes(), members: newMembers(opts.Rule),
		brake: kube.Brake[types.NamespacedName]{Every: opts.WriteEvery},
	}
	r.outcomes.Metrics = opts.Metrics
	return r
}

// Reconcile makes the pair's profile match the rule and the cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, wait, err := r.observe(ctx, req.NamespacedName)
	if wait > 0 || err != nil {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	t := taken{next: profiles.NextAllowed(o), before: o.Profile}
	if wait := r.waitFor(ctx, o, t.next); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if o.Member, err = r.memberOf(ctx, o, t.next); err != nil {
		return reconcile.Result{}, err
	}
	t.problems, t.err = r.act(ctx, &o, t.next)
	result, err := r.conclude(ctx, o, t)
	if err == nil {
		result.RequeueAfter = kube.Sooner(result.RequeueAfter, t.again(o))
	}
	return result, err
}

// taken is a step that was taken, and its result.
type taken struct {
	next     profiles.Step
	before   *inventoryv1alpha1.ClusterProfile // the profile before it
	problems []string                          // what was left out of the profile
	err      error
}

// again returns when time alone changes the rule's answer.
func (t taken) again(o profiles.Observed) time.Duration {
	if t.next == profiles.Refrain || apierrors.IsAlreadyExists(t.err) {
		return 0
	}
	return o.Selected.Again
}

// observe reads what is known about a pair, and passes on the rule's answer: copies of tokens
// are withdrawn without ClusterProfiles, too. wait is how long the caller must wait because
// decisions have only just changed.
func (r *Reconciler) observe(ctx context.Context, pair types.NamespacedName) (profiles.Observed, time.Duration, error) {
	observation, selected, err := r.opts.Rule.Observe(ctx, pair)
	if err != nil {
		return profiles.Observed{}, 0, err
	}
	o := profiles.Observed{Observation: observation, Pair: pair}
	o.Orphaned = r.isOrphaned(ctx, o, selected.Answer)
	next := profiles.NextStep(o, selected)
	acting := o.ProfileAPI && (next == profiles.Create || next == profiles.Remove || o.Orphaned)
	selected, wait, err := r.opts.Rule.Settle(ctx, pair, observation, selected, acting)
	if wait > 0 || err != nil {
		return o, wait, err
	}
	o.Selected = selected
	r.opts.Rule.Track(pair, selected.Answer, o.Profile)
	if !o.ProfileAPI {
		return o, 0, nil
	}
	// The verdict is requested after observing: a change that a user made because the guard
	// forbids writing must not be answered under an older verdict that allows it.
	if o.Verdict, err = r.opts.Guard(ctx); err != nil {
		return o, 0, err
	}
	// While an API is not served, the information about access to clusters is unreliable as
	// well.
	if r.opts.Access != nil && len(o.Unserved) == 0 {
		o.Access = profiles.TrustedAccess(r.opts.Access.Of(pair.Name), o.Restoring())
	}
	return o, 0, nil
}

// waitFor returns how long a step must wait: for the cache to show the last write, or for
// references to a profile to go.
func (r *Reconciler) waitFor(ctx context.Context, o profiles.Observed, next profiles.Step) time.Duration {
	if next == profiles.Refrain {
		return 0
	}
	if wait := r.expectations.Wait(o.Pair, kube.ObjectOrNil(o.Profile), r.opts.Clock.Now()); wait > 0 {
		return wait
	}
	return r.releaseFirst(ctx, o, next)
}

// conclude records the result of a step, for the condition, the events, the metrics and the
// references, and returns when to reconcile the pair again.
func (r *Reconciler) conclude(ctx context.Context, o profiles.Observed, t taken) (reconcile.Result, error) {
	switch {
	case t.next == profiles.Refrain || t.next == profiles.UpdateAccess:
		r.outcomes.Forget(o.Pair)
		r.allowReferences(o, t)
		return r.finish(ctx, o.Pair, t)
	case apierrors.IsAlreadyExists(t.err):
		// Another client was first, or the response to our own request was lost. The profile's
		// event will show which.
		return reconcile.Result{RequeueAfter: kube.StaleAfter}, nil
	}
	if t.err == nil && o.Cluster != nil {
		// What had to wait for its budget says nothing about how fast the manager is.
		_, heldBack := r.brake.HeldBack(o.Pair, r.opts.Clock.Now())
		r.opts.Metrics.ProfileServed(
			o.Pair, o.Cluster.ResourceVersion, t.before != nil && t.before != o.Profile && heldBack == 0)
	}
	r.record(o, t)
	r.allowReferences(o, t)
	if t.err == nil && t.next == profiles.Remove {
		r.outcomes.RemovedInconclusively(
			o.Pair.Name, o.Selected.Inconclusive, o.Selected.ByAddon, r.opts.Clock.Now())
	}
	return r.finish(ctx, o.Pair, t)
}

// memberOf returns the member id of a pair's cluster, if its profiles may be written. While
// ManagedClusters may be missing only for a moment, a profile keeps the id that it has.
func (r *Reconciler) memberOf(ctx context.Context, o profiles.Observed, next profiles.Step) (profiles.MemberID, error) {
	if next == profiles.Refrain || next == profiles.UpdateAccess {
		return profiles.MemberID{}, nil
	}
	if o.Cluster != nil && o.Profile != nil && (o.Restoring() || len(o.Unserved) > 0) {
		return profiles.ShownMemberID(o), nil
	}
	member, freed, err := r.members.of(ctx, o, next == profiles.Create || next == profiles.Update)
	if freed != "" && r.freed != nil {
		r.freed(o.Pair.Name, freed)
	}
	return member, err
}

// finish ends a reconciliation. A profile that another client keeps changing, or that has used
// up its budget, is reconciled again when it may be written, and when that is over.
func (r *Reconciler) finish(ctx context.Context, pair types.NamespacedName, t taken) (reconcile.Result, error) {
	contention, waits := &kube.ContestedError{}, &kube.HeldBackError{}
	switch err := t.err; {
	case t.next == profiles.Refrain:
		return reconcile.Result{}, nil
	case errors.As(err, &waits):
		return reconcile.Result{RequeueAfter: waits.Wait}, nil
	case errors.As(err, &contention):
		if contention.First {
			log.FromContext(ctx).Info("Another client keeps changing the ClusterProfile, so it is repaired less often",
				"every", kube.RepairEvery)
		}
		return reconcile.Result{RequeueAfter: contention.Wait}, nil
	case t.next == profiles.Remove && err != nil && !apierrors.IsConflict(err) &&
		r.failing.Lasted(pair, kube.LastingAfter, r.opts.Clock.Now()):
		// Urgent retries of thousands of refused removals would keep all others waiting.
		return reconcile.Result{Priority: ptr.To(watch.PriorityLow)}, err
	case err != nil:
		return reconcile.Result{}, err
	default:
		now := r.opts.Clock.Now()
		_, heldBack := r.brake.HeldBack(pair, now)
		return reconcile.Result{RequeueAfter: kube.Sooner(r.brake.Contested(pair, now), heldBack)}, nil
	}
}

// priority returns how urgent a pair is, according to the caches.
func (r *Reconciler) priority(ctx context.Context, req reconcile.Request) int {
	observation, selected, err := r.opts.Rule.Observe(ctx, req.NamespacedName)
	if err != nil {
		return watch.PriorityNormal // its reconciliation will show why
	}
	last, _ := r.outcomes.Get(req.NamespacedName)
	o := profiles.Observed{Observation: observation}
	wasInPlace := last.Kind == report.InPlace || last.Kind == report.Contested
	return profiles.PriorityOf(profiles.NextStep(o, selected), o.Profile != nil, wasInPlace)
}

// act takes the next step and returns what was left out of the profile.
func (r *Reconciler) act(ctx context.Context, o *profiles.Observed, next profiles.Step) ([]string, error) {
	switch next {
	case profiles.Create, profiles.Update:
		return r.apply(ctx, o)
	case profiles.UpdateAccess:
		return nil, r.applyAccess(ctx, o)
	case profiles.Remove:
		return nil, r.prune(ctx, o)
	default:
		return nil, nil
	}
}

// apply writes the differences from the desired profile: at creation the object and then
// its status, afterwards at most one patch each of metadata and status.
func (r *Reconciler) apply(ctx context.Context, o *profiles.Observed) ([]string, error) {
	now := metav1.NewTime(r.opts.Clock.Now().Truncate(time.Second))
	desire := func(o profiles.Observed) *inventoryv1alpha1.ClusterProfile {
		desired, _ := profiles.Desired(o, r.opts.LabelAllow, now)
		return desired
	}
	desired, problems := profiles.Desired(*o, r.opts.LabelAllow, now)
	if profiles.IsAsDesired(o.Profile, desired) {
		return problems, nil
	}
	if o.Profile != nil {
		switch old, err := r.opts.Rule.IsOutdated(ctx, o.Observation); {
		case err != nil:
			return problems, err
		case old: // a manager before this one may have written what is newer
			return problems, &kube.HeldBackError{Wait: selection.LagRecheck}
		}
	}
	if err := r.checkBudget(*o); err != nil {
		return problems, r.applyUrgent(ctx, o, desire, err)
	}
	before := *o
	if o.Profile == nil {
		if err := r.create(ctx, o, desire); err != nil {
			return problems, err
		}
	} else if err := r.patch(ctx, o, kube.Rewrite, desire, profiles.MetadataChanges, r.writer.Patch); err != nil {
		if kube.IsRefusal(err) {
			err = r.applyUrgent(ctx, o, desire, err)
		}
		return problems, err
	}
	return problems, r.writeStatus(ctx, before, o, desire)
}

// writeStatus writes the status of a profile of ours, and says what that means for other writers
// of what was there before.
func (r *Reconciler) writeStatus(
	ctx context.Context, before profiles.Observed, o *profiles.Observed, desire desireFunc,
) error {
	others := profiles.OthersProperties(*o)
	if profiles.IsAdoption(before) && len(others) > 0 {
		log.FromContext(ctx).Info("Took over the ClusterProfile; the properties of other writers stay",
			"properties", kube.ListNames(others, profiles.MaxNames))
	}
	owner := client.FieldOwner(ControllerName)
	if len(others) > 0 {
		owner = profiles.MixedFieldOwner
	}
	if err := r.patch(ctx, o, kube.Rewrite, desire, profiles.StatusChanges, r.patchStatus(owner)); err != nil {
		return err
	}
	r.outcomes.Overruled(before.Pair, profiles.Overruled(before), r.opts.Clock.Now())
	// A property that is removed may be another client's from now on.
	if _, isListed := o.Profile.Annotations[contract.AnnotationProperties]; isListed {
		return r.patch(ctx, o, kube.Urgent, desire, profiles.MetadataChanges, r.writer.Patch)
	}
	return nil
}

// checkBudget returns a *kube.HeldBackError if a change of a profile must wait.
func (r *Reconciler) checkBudget(o profiles.Observed) error {
	version := ""
	if o.Profile != nil {
		version = profiles.OwnPart(o.Profile)
	}
	return r.brake.CheckBudget(o.Pair, version, r.opts.Clock.Now())
}

// applyUrgent writes what must not wait of a profile whose changes wait or are refused, and
// returns the error of what is still to be written. Properties wait in any case: which of them
// are this addon's is written before they are.
func (r *Reconciler) applyUrgent(ctx context.Context, o *profiles.Observed, desire desireFunc, waits error) error {
	if o.Profile == nil || !profiles.IsUrgent(o.Profile, desire(*o)) {
		return waits
	}
	urgent := func(o profiles.Observed) *inventoryv1alpha1.ClusterProfile {
		desired := desire(o)
		desired.Status.Properties = o.Profile.Status.Properties
		return desired
	}
	if err := r.patch(ctx, o, kube.Urgent, urgent, profiles.StatusChanges, r.patchStatus(ControllerName)); err != nil {
		return err
	}
	held := (*kube.HeldBackError)(nil)
	switch {
	case !errors.As(waits, &held):
		return waits
	case profiles.IsAsDesired(o.Profile, desire(*o)):
		return nil
	default:
		return r.checkBudget(*o)
	}
}

// applyAccess writes only the access providers, to a profile that another client maintains.
func (r *Reconciler) applyAccess(ctx context.Context, o *profiles.Observed) error {
	desire := func(o profiles.Observed) *inventoryv1alpha1.ClusterProfile {
		desired := o.Profile.DeepCopy()
		desired.Status.AccessProviders, _ = profiles.DesiredAccess(o)
		return desired
	}
	return r.patch(ctx, o, kube.Urgent, desire, profiles.StatusChanges, r.patchStatus(ControllerName))
}

// desireFunc returns what a pair's profile must be.
type desireFunc func(profiles.Observed) *inventoryv1alpha1.ClusterProfile

// changesFunc returns the part of a merge patch that turns a profile into another, or nil
// if there is nothing to change.
type changesFunc func(current, desired *inventoryv1alpha1.ClusterProfile) map[string]any

type patchFunc func(context.Context, client.Object, client.Patch, ...client.PatchOption) error

// patchStatus patches the status in the name of a field manager.
func (r *Reconciler) patchStatus(owner client.FieldOwner) patchFunc {
	return func(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
		return r.writer.Status().Patch(ctx, obj, patch, owner)
	}
}

func (r *Reconciler) create(ctx context.Context, o *profiles.Observed, desire desireFunc) error {
	if err := r.brake.Check(o.Pair, kube.Rewrite, "", r.opts.Clock.Now()); err != nil {
		return err
	}
	created := desire(*o)
	if err := r.writer.Create(ctx, created, client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("creating ClusterProfile: %w", err)
	}
	log.FromContext(ctx).Info("Created ClusterProfile", "uid", created.UID)
	r.wrote(o, kube.Rewrite, "", created, desire, profiles.MetadataChanges)
	return nil
}

// patch writes the differences, if any, to the observed profile.
func (r *Reconciler) patch(
	ctx context.Context, o *profiles.Observed, what kube.Write, desire desireFunc, differing changesFunc, write patchFunc,
) error {
	changes := differing(o.Profile, desire(*o))
	if changes == nil {
		return nil
	}
	before := profiles.OwnPart(o.Profile)
	if err := r.brake.Check(o.Pair, what, before, r.opts.Clock.Now()); err != nil {
		return err
	}
	patch, err := kube.MergePatch(o.Profile.ResourceVersion, changes)
	if err != nil {
		return err
	}
	written := &inventoryv1alpha1.ClusterProfile{}
	written.Namespace, written.Name = o.Profile.Namespace, o.Profile.Name
	if err := write(ctx, written, patch, client.FieldOwner(ControllerName)); err != nil {
		r.lost(o, what, err)
		return fmt.Errorf("patching ClusterProfile: %w", err)
	}
	log.FromContext(ctx).V(1).Info("Patched ClusterProfile", "resourceVersion", written.ResourceVersion)
	r.wrote(o, what, before, written, desire, differing)
	return nil
}

// wrote records a write of our part of the pair's profile. If the result is not as desired,
// a webhook has changed it on the way, which counts as another client.
func (r *Reconciler) wrote(
	o *profiles.Observed, what kube.Write, before string, written *inventoryv1alpha1.ClusterProfile,
	desire desireFunc, differing changesFunc,
) {
	now := r.opts.Clock.Now()
	next := *o
	next.Profile = profiles.Trim(written.DeepCopy()) // as it will be observed
	after := profiles.OwnPart(next.Profile)
	if differing(next.Profile, desire(next)) != nil {
		after = kube.NotAsMeant
	}
	r.brake.Wrote(o.Pair, what, before, after, now)
	r.expectations.Wrote(written, now)
	o.Profile = written
}

// lost records a write that failed because another client was faster. There is no other attempt
// before the cache shows what that client did.
func (r *Reconciler) lost(o *profiles.Observed, what kube.Write, err error) {
	switch {
	case apierrors.IsConflict(err):
		r.brake.Lost(o.Pair, what, profiles.OwnPart(o.Profile), r.opts.Clock.Now())
		r.expectations.Conflicted(o.Profile, r.opts.Clock.Now())
	case kube.IsGone(err) && o.Profile != nil:
		r.expectations.Gone(o.Profile, r.opts.Clock.Now())
	}
}

// prune deletes the profile if it is still exactly as observed: with another UID it is
// another client's, with another version it may have lost our mark.
func (r *Reconciler) prune(ctx context.Context, o *profiles.Observed) error {
	before := profiles.OwnPart(o.Profile)
	if err := r.brake.Check(o.Pair, kube.Remove, before, r.opts.Clock.Now()); err != nil {
		return err
	}
	profile := o.Profile.DeepCopy()
	exactly := client.Preconditions{UID: &o.Profile.UID, ResourceVersion: &o.Profile.ResourceVersion}
	err := r.writer.Delete(ctx, profile, exactly)
	if kube.IgnoreGone(err) != nil {
		r.lost(o, kube.Remove, err)
		return fmt.Errorf("deleting ClusterProfile: %w", err)
	}
	log.FromContext(ctx).Info("Deleted ClusterProfile", "uid", o.Profile.UID)
	r.brake.Wrote(o.Pair, kube.Remove, before, "", r.opts.Clock.Now())
	if err == nil {
		r.expectations.Deleted(o.Profile, r.opts.Clock.Now())
	} else {
		r.expectations.Gone(o.Profile, r.opts.Clock.Now())
	}
	return nil
}

// record stores the outcome of the pair, for the condition and the events.
func (r *Reconciler) record(o profiles.Observed, t taken) {
	pair, selected, problems, err := o.Pair, o.Selected, t.problems, t.err
	if err == nil {
		r.failing.Over(pair)
	}
	contention, waits := &kube.ContestedError{}, &kube.HeldBackError{}
	isHeldBack := errors.As(err, &waits)
	last, _ := r.outcomes.Get(pair)
	isContested := errors.As(err, &contention) ||
		(err == nil || isHeldBack) && r.brake.Contested(pair, r.opts.Clock.Now()) > 0
	switch {
	case isContested:
		r.outcomes.Set(pair, report.Outcome{
			Kind: report.Contested, Properties: problems, Access: o.Access.Problems, Bindings: selected.Bindings,
			Why: fmt.Sprintf("has a ClusterProfile that another client keeps changing, so it is repaired at most every %s; "+
				"find out which one, for instance from its metadata.managedFields", kube.RepairEvery),
		})
	case isHeldBack && o.Profile == nil:
		// It is about to be created again.
	case (err == nil || isHeldBack) && o.Profile != nil && selected.Answer == selection.Unknown && selected.Again > 0:
		// The absence of something is about to count, or not.
	case err != nil && !kube.IsRefusal(err) && last.Kind == report.Failed:
		// Nothing has been written since, and the text of an error may differ with each retry.
	case isHeldBack:
		r.outcomes.Set(pair, r.heldBack(pair, report.Of(o, selected, problems)))
	case apierrors.IsConflict(err),
		err != nil && !kube.IsRefusal(err) && !r.failing.Lasted(pair, kube.LastingAfter, r.opts.Clock.Now()):
		// The write is retried; until then the previous outcome is the best one known.
	case err != nil:
		r.outcomes.Set(pair, report.Outcome{
			Kind:     report.Failed,
			Why:      "cannot be published: " + kube.Shorten(err.Error(), maxErrorBytes),
			Bindings: selected.Bindings,
		})
	case o.Profile == nil && selected.Answer == selection.No && len(selected.Bindings) == 0:
		r.outcomes.Forget(pair)
	default:
		r.outcomes.Set(pair, r.heldBack(pair, report.Of(o, selected, problems)))
	}
}

// heldBack completes an outcome: it records whether changes have waited for long.
func (r *Reconciler) heldBack(pair types.NamespacedName, out report.Outcome) report.Outcome {
	lasted, _ := r.brake.HeldBack(pair, r.opts.Clock.Now())
	out.HeldBack = lasted > heldBackAfter
	return out
}
