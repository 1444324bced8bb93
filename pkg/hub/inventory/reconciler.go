package inventory

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxErrorBytes bounds how much of an API server's refusal messages repeat.
	maxErrorBytes = 300

	// permanentEvery is how often a profile is tried again that the API server finds
	// invalid or too large. Normally the change that makes it acceptable is an event;
	// that of an admission policy is none.
	permanentEvery = 10 * time.Minute
)

// Reconciler keeps the profile of one pair: the request's namespace and, as its
// name, the cluster.
type Reconciler struct {
	rule       *selection.Rule
	writer     client.Client
	guard      Guard
	access     Access // nil: access providers are not ours
	labelAllow []string
	metrics    *metrics.Metrics
	clock      clock.PassiveClock

	outcomes     *outcomes
	expectations *kube.Expectations
	failing      kube.Lasting[types.NamespacedName] // by pair
}

func newReconciler(writer client.Client, opts Options) *Reconciler {
	r := &Reconciler{
		rule:         opts.Rule,
		writer:       writer,
		guard:        opts.Guard,
		access:       opts.Access,
		labelAllow:   opts.LabelAllow,
		metrics:      opts.Metrics,
		clock:        opts.Clock,
		outcomes:     newOutcomes(),
		expectations: kube.NewExpectations(),
	}
	r.outcomes.metrics = opts.Metrics
	return r
}

// Reconcile makes the pair's profile what the rule and the cluster say.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pair := req.NamespacedName
	observation, selected, err := r.rule.Observe(ctx, pair)
	if err != nil {
		return reconcile.Result{}, err
	}
	o := observed{Observation: observation, pair: pair}
	if !o.ProfileAPI {
		r.outcomes.forget(pair)
		return reconcile.Result{}, nil
	}
	next := nextStep(o, selected.Answer)
	selected, wait, err := r.rule.Settle(ctx, pair, observation, selected, next == create || next == remove)
	if wait > 0 || err != nil {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	r.rule.Track(pair, selected.Answer, o.Profile)
	// Asked after observing: what somebody did because the guard is known to forbid
	// writing must not be acted on under an older verdict that allows it.
	verdict, err := r.guard.Verdict(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !verdict.Allowed {
		r.outcomes.forget(pair)
		return reconcile.Result{}, nil
	}
	if wait := r.expectations.Wait(pair, objectOrNil(o.Profile), r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	// While an API is not served, what is known about access to clusters is
	// unreliable as well.
	if r.access != nil && len(o.Unserved) == 0 {
		o.access = trustedAccess(r.access.Of(pair.Name), o.Restoring())
	}
	before := o.Profile
	problems, err := r.act(ctx, &o, selected.Answer)
	if apierrors.IsAlreadyExists(err) {
		// Somebody else was first, or the response to our own request was lost. The
		// profile's event will show which.
		return reconcile.Result{RequeueAfter: kube.StaleAfter}, nil
	}
	if err == nil && o.Cluster != nil {
		r.metrics.ProfileServed(pair, o.Cluster.ResourceVersion, before != nil && before != o.Profile)
	}
	r.record(pair, o, selected, problems, err)
	if kube.IsPermanent(err) && next != remove {
		log.FromContext(ctx).Info("The API server does not accept the ClusterProfile",
			"reason", kube.Shorten(err.Error(), maxErrorBytes))
		return reconcile.Result{RequeueAfter: permanentEvery}, nil
	}
	return reconcile.Result{}, err
}

// priority returns how urgent a pair is, as far as the caches say.
func (r *Reconciler) priority(ctx context.Context, req reconcile.Request) int {
	observation, selected, err := r.rule.Observe(ctx, req.NamespacedName)
	if err != nil {
		return kube.PriorityNormal // its turn will show why
	}
	last, _ := r.outcomes.get(req.NamespacedName)
	o := observed{Observation: observation}
	return priorityOf(nextStep(o, selected.Answer), o.Profile != nil, last.kind == inPlace)
}

// act takes the next step and returns what was left out of the profile.
func (r *Reconciler) act(ctx context.Context, o *observed, answer selection.Answer) ([]string, error) {
	switch nextStep(*o, answer) {
	case create, update:
		return r.apply(ctx, o)
	case remove:
		return nil, r.prune(ctx, o)
	default:
		return nil, nil
	}
}

// apply writes what differs from the desired profile: at birth the object and then
// its status, afterwards at most one patch each of metadata and status.
func (r *Reconciler) apply(ctx context.Context, o *observed) ([]string, error) {
	now := metav1.NewTime(r.clock.Now().Truncate(time.Second))
	desired, problems := desiredProfile(*o, r.labelAllow, now)
	if o.Profile == nil {
		if err := r.create(ctx, o, desired); err != nil {
			return nil, err
		}
	} else if err := r.patch(ctx, o, metadataChanges(o.Profile, desired), r.writer.Patch); err != nil {
		return nil, err
	}
	desired, _ = desiredProfile(*o, r.labelAllow, now)
	return problems, r.patch(ctx, o, statusChanges(o.Profile, desired), r.patchStatus)
}

func (r *Reconciler) create(ctx context.Context, o *observed, desired *inventoryv1alpha1.ClusterProfile) error {
	created := desired.DeepCopy()
	if err := r.writer.Create(ctx, created, client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("creating ClusterProfile: %w", err)
	}
	log.FromContext(ctx).Info("Created ClusterProfile", "uid", created.UID)
	r.expectations.Wrote(created, r.clock.Now())
	o.Profile = created
	return nil
}

type patchFunc func(context.Context, client.Object, client.Patch, ...client.PatchOption) error

func (r *Reconciler) patchStatus(
	ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption,
) error {
	return r.writer.Status().Patch(ctx, obj, patch, client.FieldOwner(ControllerName))
}

// patch writes changes, if there are any, to the profile that was observed.
func (r *Reconciler) patch(ctx context.Context, o *observed, changes map[string]any, write patchFunc) error {
	if changes == nil {
		return nil
	}
	patch, err := kube.MergePatch(o.Profile.ResourceVersion, changes)
	if err != nil {
		return err
	}
	written := &inventoryv1alpha1.ClusterProfile{}
	written.Namespace, written.Name = o.Profile.Namespace, o.Profile.Name
	if err := write(ctx, written, patch, client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("patching ClusterProfile: %w", err)
	}
	log.FromContext(ctx).V(1).Info("Patched ClusterProfile", "resourceVersion", written.ResourceVersion)
	r.expectations.Wrote(written, r.clock.Now())
	o.Profile = written
	return nil
}

// prune deletes the profile if it is still exactly what was observed: with another
// UID it is somebody else's, with another version it may have lost our mark.
func (r *Reconciler) prune(ctx context.Context, o *observed) error {
	profile := o.Profile.DeepCopy()
	exactly := client.Preconditions{UID: &o.Profile.UID, ResourceVersion: &o.Profile.ResourceVersion}
	err := r.writer.Delete(ctx, profile, exactly)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ClusterProfile: %w", err)
	}
	log.FromContext(ctx).Info("Deleted ClusterProfile", "uid", o.Profile.UID)
	r.expectations.Deleted(o.Profile, r.clock.Now())
	return nil
}

// record remembers the outcome for the pair, for the condition and the events.
func (r *Reconciler) record(
	pair types.NamespacedName, o observed, selected selection.Result, problems []string, err error,
) {
	if err == nil {
		r.failing.Over(pair)
	}
	switch {
	case apierrors.IsConflict(err), err != nil && !kube.IsRefusal(err) && !r.failing.Failed(pair, r.clock.Now()):
		// It is tried again; until then the previous outcome is the best one known.
	case err != nil:
		r.outcomes.set(pair, outcome{
			kind:     failed,
			why:      "cannot be published: " + kube.Shorten(err.Error(), maxErrorBytes),
			bindings: selected.Bindings,
		})
	case o.Profile == nil && selected.Answer == selection.No && len(selected.Bindings) == 0:
		r.outcomes.forget(pair)
	default:
		r.outcomes.set(pair, outcomeOf(o, selected, problems))
	}
}

// objectOrNil avoids an interface that holds a nil pointer.
func objectOrNil(profile *inventoryv1alpha1.ClusterProfile) client.Object {
	if profile == nil {
		return nil
	}
	return profile
}
