package inventory

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxErrorBytes bounds what of an API server's refusal is repeated to people.
const maxErrorBytes = 300

// Reconciler keeps the profile of one pair: the request's namespace and, as its
// name, the cluster.
type Reconciler struct {
	reader     client.Reader // caches
	writer     client.Client
	guard      Guard
	access     Access // nil: not ours
	labelAllow []string
	clock      clock.PassiveClock

	outcomes     *outcomes
	answers      *answers
	expectations *kube.Expectations
	settling     *settling
}

func newReconciler(reader client.Reader, writer client.Client, opts Options) *Reconciler {
	return &Reconciler{
		reader:       reader,
		writer:       writer,
		guard:        opts.Guard,
		access:       opts.Access,
		labelAllow:   opts.LabelAllow,
		clock:        opts.Clock,
		outcomes:     newOutcomes(),
		answers:      newAnswers(opts.OnSelection),
		expectations: kube.NewExpectations(),
		settling:     newSettling(),
	}
}

// Reconcile makes the pair's profile what the rule and the cluster say.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pair := req.NamespacedName
	o, err := observe(ctx, r.reader, pair)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !o.profileAPI {
		r.outcomes.forget(pair)
		return reconcile.Result{}, nil
	}
	s := selectPair(o)
	if wait, err := r.settle(ctx, pair, o, s); wait > 0 || err != nil {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	r.answers.tell(pair, s.answer, o.profile)
	// Asked after observing: whatever was done because a verdict was known to hold
	// is not acted upon under an older one.
	verdict, err := r.guard.Verdict(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !verdict.Allowed {
		r.outcomes.forget(pair)
		return reconcile.Result{}, nil
	}
	if wait := r.expectations.Wait(pair, objectOrNil(o.profile), r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	// Without the APIs it rests on, what is known of the ways in is no answer either.
	if r.access != nil && len(o.unserved) == 0 {
		o.access = r.access.Of(pair.Name)
	}
	left, err := r.act(ctx, &o, s)
	if apierrors.IsAlreadyExists(err) {
		// Somebody was first, or the answer to our own request was lost: the cache
		// will tell, and that is an event.
		return reconcile.Result{RequeueAfter: kube.StaleAfter}, nil
	}
	r.record(pair, o, s, left, err)
	return reconcile.Result{}, err
}

// settle returns how long an absence from Placements' decisions must still last
// before anything follows from it.
func (r *Reconciler) settle(ctx context.Context, pair types.NamespacedName, o observed, s selection) (time.Duration, error) {
	left := r.settling.see(o.placements, r.clock.Now())
	switch {
	case s.byPlacement && nextStep(o, s) == remove:
		return left, nil
	case len(s.undecided) == 0:
		return 0, nil
	case left > 0:
		return left, nil
	}
	for _, placement := range s.undecided {
		r.settling.await(types.NamespacedName{Namespace: pair.Namespace, Name: placement})
	}
	// An event that came between the observation and the line above found nobody
	// waiting.
	again, err := observePlacements(ctx, r.reader, pair)
	return r.settling.see(again, r.clock.Now()), err
}

// act does what is to be done about the profile, and returns which claims were
// left out of it.
func (r *Reconciler) act(ctx context.Context, o *observed, s selection) ([]string, error) {
	switch nextStep(*o, s) {
	case create, update:
		return r.apply(ctx, o)
	case remove:
		return nil, r.prune(ctx, o)
	default:
		return nil, nil
	}
}

// apply writes what differs from the desired profile: at birth the object and
// then its status, afterwards one patch each of metadata and status at most.
func (r *Reconciler) apply(ctx context.Context, o *observed) ([]string, error) {
	now := metav1.NewTime(r.clock.Now().Truncate(time.Second))
	namespace := o.namespace.Name
	desired, left := desiredProfile(namespace, o.cluster, o.access, o.profile, r.labelAllow, now)
	if o.profile == nil {
		if err := r.create(ctx, o, desired); err != nil {
			return nil, err
		}
	} else if err := r.patch(ctx, o, metadataChanges(o.profile, desired), r.writer.Patch); err != nil {
		return nil, err
	}
	desired, _ = desiredProfile(namespace, o.cluster, o.access, o.profile, r.labelAllow, now)
	return left, r.patch(ctx, o, statusChanges(o.profile, desired), r.patchStatus)
}

func (r *Reconciler) create(ctx context.Context, o *observed, desired *inventoryv1alpha1.ClusterProfile) error {
	created := desired.DeepCopy()
	if err := r.writer.Create(ctx, created, client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("creating ClusterProfile: %w", err)
	}
	log.FromContext(ctx).Info("Created ClusterProfile", "uid", created.UID)
	r.expectations.Wrote(created, r.clock.Now())
	o.profile = created
	return nil
}

type patchFunc func(context.Context, client.Object, client.Patch, ...client.PatchOption) error

func (r *Reconciler) patchStatus(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return r.writer.Status().Patch(ctx, obj, patch, client.FieldOwner(ControllerName))
}

// patch writes changes, if there are any, to the profile as it was observed.
func (r *Reconciler) patch(ctx context.Context, o *observed, changes map[string]any, write patchFunc) error {
	if changes == nil {
		return nil
	}
	patch, err := kube.MergePatch(o.profile.ResourceVersion, changes)
	if err != nil {
		return err
	}
	written := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: o.profile.Namespace, Name: o.profile.Name}}
	if err := write(ctx, written, patch, client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("patching ClusterProfile: %w", err)
	}
	log.FromContext(ctx).V(1).Info("Patched ClusterProfile", "resourceVersion", written.ResourceVersion)
	r.expectations.Wrote(written, r.clock.Now())
	o.profile = written
	return nil
}

// prune deletes the profile, if it is still exactly what was observed: with
// another UID it is another's, with another version it may have lost its mark.
func (r *Reconciler) prune(ctx context.Context, o *observed) error {
	profile := o.profile.DeepCopy()
	err := r.writer.Delete(ctx, profile, client.Preconditions{UID: &o.profile.UID, ResourceVersion: ptr.To(o.profile.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ClusterProfile: %w", err)
	}
	log.FromContext(ctx).Info("Deleted ClusterProfile", "uid", o.profile.UID)
	r.expectations.Deleted(o.profile, r.clock.Now())
	return nil
}

// record remembers how the pair came out, for the condition and the events.
func (r *Reconciler) record(pair types.NamespacedName, o observed, s selection, left []string, err error) {
	switch {
	case err != nil && !kube.IsRefusal(err):
		// Tried again; what was so before is still the best there is to say.
	case err != nil:
		r.outcomes.set(pair, outcome{
			result:   failed,
			why:      "cannot be published: " + kube.Shorten(err.Error(), maxErrorBytes),
			bindings: s.bindings,
		})
	case o.profile == nil && s.answer == No && len(s.bindings) == 0:
		r.outcomes.forget(pair)
	default:
		r.outcomes.set(pair, outcomeOf(o, s, left))
	}
}

// objectOrNil avoids an interface that holds a nil pointer.
func objectOrNil(profile *inventoryv1alpha1.ClusterProfile) client.Object {
	if profile == nil {
		return nil
	}
	return profile
}
