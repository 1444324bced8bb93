package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// pollInterval is the minimum pause between two observations of the hub. On a large hub
	// they take longer, and so do the pauses.
	pollInterval = time.Second

	// pageSize is how many objects one list request returns. The objects of thousands of
	// clusters in one response would not fit into the hook's memory.
	pageSize = 250

	// answerCounts is how long after its first confirmation for a cluster the manager is
	// taken to know for all of them that it keeps the profiles.
	answerCounts = 30 * time.Second

	// appliedWithoutHooks is the ConfigMap that the chart has as a hook of installations and
	// upgrades: it exists only where hooks are applied as ordinary objects.
	appliedWithoutHooks = "cluster-inventory-applied-without-hooks"

	// workers is how many objects are deleted or changed at a time. Each waits for the
	// API server nearly all the time, which may wait for a conversion webhook.
	workers = 16
)

// Options configures the uninstallation.
type Options struct {
	// Namespace is the release's. Required.
	Namespace string

	// Timeout limits the whole uninstallation.
	Timeout time.Duration

	// KeepProfiles leaves the ClusterProfiles in place.
	KeepProfiles bool

	// RegistrationClusterRole is the name of the ClusterRole of OCM's registration
	// controller, which tells whether OCM's own ClusterProfile gate is on.
	RegistrationClusterRole string

	// IsGateOff decides by that ClusterRole, nil if there is none, as the manager does: it
	// returns whether the gate is certainly off. Required.
	IsGateOff func(role *rbacv1.ClusterRole) bool

	// GrantNamespaces lists the namespaces, sorted, with RoleBindings that grant the manager
	// its rights to read or to copy tokens. It holds at most pageSize of them. Required.
	GrantNamespaces func(ctx context.Context, reader client.Reader, pageSize int64) ([]string, error)

	// GrantsStay is true if the manager does not remove these RoleBindings.
	GrantsStay bool
}

// Run removes the addon from every cluster of the hub and returns when it is gone.
// Its error says what is left; running it again continues from there.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(addonv1beta1.Install(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	u := &uninstaller{client: c, opts: opts, clock: clock.RealClock{}, every: pollInterval, pageSize: pageSize}
	return u.run(ctx)
}

type uninstaller struct {
	client   client.Client
	opts     Options
	clock    clock.PassiveClock
	every    time.Duration
	pageSize int64

	// progress is the last progress message.
	progress string

	// idle counts how many times in a row nothing was left to do.
	idle int

	// role is the ClusterRole of OCM's registration controller.
	role kube.Held[*rbacv1.ClusterRole]

	// answered is when the manager first confirmed for some cluster that it keeps the
	// profiles.
	answered time.Time

	// keeps is true if the profiles stay, and with them the references to them.
	keeps bool

	// allDeleting is true if all addons were being deleted when they were last seen.
	allDeleting bool
}

func (u *uninstaller) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, u.opts.Timeout)
	defer cancel()

	var lastErr error
	for {
		began := time.Now()
		done, err := u.advance(ctx)
		switch {
		case isMissingRight(err):
			return fmt.Errorf("the uninstall hook lacks a right that its ClusterRole or Role should grant: %w", err)
		case done, isFinal(err):
			return err
		case ctx.Err() == nil:
			lastErr = err
		}
		if err != nil {
			log.FromContext(ctx).Error(err, "A step of the uninstallation failed and is retried")
		}
		select {
		case <-time.After(max(u.every, time.Since(began))):
			continue
		case <-ctx.Done():
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return u.timedOut(lastErr)
		}
		return ctx.Err()
	}
}

// advance does the next part of the work. It returns true when there is nothing left to do, or
// when the addon is not being uninstalled at all.
func (u *uninstaller) advance(ctx context.Context) (done bool, err error) {
	if applied, err := u.isAppliedWithTheRest(ctx); applied || err != nil {
		return applied, err
	}
	for _, part := range []func(context.Context) (bool, error){u.takeStep, u.removeSlices, u.removeRevisions} {
		if done, err := part(ctx); !done {
			return false, err
		}
	}
	return true, nil
}

// isAppliedWithTheRest reports whether a tool that does not run hooks has applied this one as
// an ordinary object of the chart, so that its Job runs although nothing is being
// uninstalled.
func (u *uninstaller) isAppliedWithTheRest(ctx context.Context) (bool, error) {
	key := client.ObjectKey{Namespace: u.opts.Namespace, Name: appliedWithoutHooks}
	err := u.client.Get(ctx, key, kube.Partial(configMapKind))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading ConfigMap %s: %w", appliedWithoutHooks, err)
	default:
		log.FromContext(ctx).Info("This Job was applied together with the rest of the chart, so nothing is removed. "+
			"To uninstall the addon, delete this ConfigMap and create the Job again",
			"namespace", u.opts.Namespace, "configMap", appliedWithoutHooks)
		return true, nil
	}
}

// timedOut says in one line what was not done in time, and with which error the last failed
// step ended, if any.
func (u *uninstaller) timedOut(lastErr error) error {
	waitingFor := cmp.Or(u.progress, "the hub to respond")
	if lastErr == nil {
		return fmt.Errorf("after %s still waiting for %s", u.opts.Timeout, waitingFor)
	}
	return fmt.Errorf("after %s still waiting for %s; last error: %w", u.opts.Timeout, waitingFor, lastErr)
}

// takeStep takes the next step. It returns true when it found nothing to do twice in a row.
func (u *uninstaller) takeStep(ctx context.Context) (bool, error) {
	o, err := u.observe(ctx)
	if err != nil {
		return false, err
	}
	step := next(o, u.opts.KeepProfiles)
	if step.failure != nil {
		return false, step.failure
	}
	u.keeps = keeps(o, u.opts.KeepProfiles)
	u.logProgress(ctx, step)
	if step.done() {
		u.idle++
		return u.idle > 1, nil
	}
	u.idle = 0
	return false, u.apply(ctx, o, step)
}

func (u *uninstaller) logProgress(ctx context.Context, s step) {
	if s.waitingFor == u.progress {
		return
	}
	u.progress = s.waitingFor
	if s.done() {
		log.FromContext(ctx).Info("Nothing of the addon is left on any cluster")
		return
	}
	log.FromContext(ctx).Info("Waiting", "for", s.waitingFor)
}

func (u *uninstaller) observe(ctx context.Context) (observed, error) {
	o := observed{grantsStay: u.opts.GrantsStay}
	key := client.ObjectKey{Name: contract.AddonName}
	var err error
	if o.definition, err = kube.Get(ctx, u.client, key, &addonv1beta1.ClusterManagementAddOn{}); err != nil {
		return observed{}, err
	}
	if o.gate, err = u.observeGate(ctx); err != nil {
		return observed{}, err
	}
	if o.addons, err = u.observeAddons(ctx); err != nil {
		return observed{}, fmt.Errorf("listing ManagedClusterAddOns %s: %w", contract.AddonName, err)
	}
	o.answered = u.hasAnswered(o)
	if o.addons.clusters.count > 0 {
		return o, nil
	}
	if o.profiles, err = u.observeProfiles(ctx); err != nil {
		return observed{}, fmt.Errorf("listing ClusterProfiles: %w", err)
	}
	if o.profiles > 0 {
		return o, nil
	}
	if o.grants, err = u.opts.GrantNamespaces(ctx, u.client, u.pageSize); err != nil {
		return observed{}, fmt.Errorf("listing RoleBindings: %w", err)
	}
	return o, nil
}

// observeGate reads the ClusterRole that tells whether OCM's own gate is on. Spokes may
// write the conditions of their addons, so these do not decide what happens to profiles of
// the whole hub.
func (u *uninstaller) observeGate(ctx context.Context) (gateState, error) {
	key := client.ObjectKey{Name: u.opts.RegistrationClusterRole}
	found, err := kube.Get(ctx, u.client, key, &rbacv1.ClusterRole{})
	if err != nil {
		return gatePending, err
	}
	role, wait := u.role.Settle(found, u.clock.Now())
	switch {
	case u.opts.IsGateOff(role):
		return gateOff, nil
	case role == nil && wait > 0:
		return gatePending, nil
	default:
		return gateOn, nil
	}
}

// hasAnswered reports whether the manager has known for long enough that it keeps the
// profiles: it has said so for some cluster, after the ClusterManagementAddOn did, and what
// it decides since concerns every cluster. A spoke that keeps changing its own addon's
// condition does not delay the others' removal forever.
func (u *uninstaller) hasAnswered(o observed) bool {
	if !saysKeep(o.definition) || o.addons.confirmed == 0 {
		return false
	}
	now := u.clock.Now()
	if u.answered.IsZero() {
		u.answered = now
	}
	return now.Sub(u.answered) >= answerCounts
}

// observeAddons summarizes the addons. Their content, which takes much more memory
// and work than their metadata, is read only while it can matter: the hook has seen
// them all, and every one that is left is being deleted.
func (u *uninstaller) observeAddons(ctx context.Context) (addonSummary, error) {
	if u.allDeleting {
		summary := addonSummary{}
		err := u.eachMetadata(ctx, addonKind, ourAddons(), func(page []metav1.PartialObjectMetadata) error {
			for i := range page {
				summary.addName(&page[i])
			}
			return nil
		})
		if err != nil || summary.deleting == summary.clusters.count {
			return summary, err
		}
	}
	summary := addonSummary{}
	newPage := func() *addonv1beta1.ManagedClusterAddOnList { return &addonv1beta1.ManagedClusterAddOnList{} }
	err := kube.EachPage(ctx, u.client, u.pageSize, newPage, func(page *addonv1beta1.ManagedClusterAddOnList) error {
		for i := range page.Items {
			summary.add(&page.Items[i])
		}
		return nil
	}, ourAddons())
	if err != nil {
		return addonSummary{}, err
	}
	u.allDeleting = summary.deleting == summary.clusters.count
	return summary, nil
}

// observeProfiles counts the marked profiles that are not being deleted. The hook does not
// wait for a profile that only waits for another's finalizer. A hub without the API has no
// profiles.
func (u *uninstaller) observeProfiles(ctx context.Context) (int, error) {
	count := 0
	err := u.eachMetadata(ctx, profileKind, ourProfiles(), func(page []metav1.PartialObjectMetadata) error {
		count += len(undeleted(page))
		return nil
	})
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return 0, nil
	}
	return count, err
}

// removeSlices deletes the PlacementDecisions of SIG-Multicluster, which then refer to no
// profile, and reports whether none is left. If profiles are kept, these stay, too, and a
// later installation continues with them.
func (u *uninstaller) removeSlices(ctx context.Context) (done bool, err error) {
	if u.keeps {
		return true, nil
	}
	return u.removeAll(ctx, sliceKind, client.MatchingLabels{contract.LabelManagedBy: contract.ManagedBy})
}

// removeRevisions deletes the AgentRevisions and the rights to their images, which Helm
// keeps, and reports whether none is left. No cluster needs one any more.
func (u *uninstaller) removeRevisions(ctx context.Context) (done bool, err error) {
	for _, what := range []struct {
		kind     schema.GroupVersionKind
		selected client.ListOption
	}{
		{revisionKind, client.MatchingLabels{}},
		{bindingKind, imageRights(u.opts.Namespace)},
		{roleKind, imageRights(u.opts.Namespace)},
	} {
		if done, err := u.removeAll(ctx, what.kind, what.selected); !done {
			return false, err
		}
	}
	return true, nil
}

func (u *uninstaller) removeAll(
	ctx context.Context, kind schema.GroupVersionKind, selected client.ListOption,
) (done bool, err error) {
	err = u.act(ctx, kind, selected, u.remove)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil, err
}

// undeleted returns the objects that are not being deleted. It reuses the memory of objects.
func undeleted(objects []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	return slices.DeleteFunc(objects, func(object metav1.PartialObjectMetadata) bool {
		return !object.DeletionTimestamp.IsZero()
	})
}

func (u *uninstaller) apply(ctx context.Context, o observed, s step) error {
	switch {
	case s.declare:
		return u.declare(ctx, o.definition, s.keep)
	case s.action == deleteAddons:
		return u.act(ctx, addonKind, ourAddons(), u.remove)
	case s.action == deleteProfiles:
		return u.act(ctx, profileKind, ourProfiles(), u.remove)
	case s.action == unmarkProfiles:
		return u.act(ctx, profileKind, ourProfiles(), u.unmark)
	default:
		return nil
	}
}

// act applies an action to every selected object that is not being deleted. Failures are
// retried at the next step; the first one is returned.
func (u *uninstaller) act(
	ctx context.Context, kind schema.GroupVersionKind, selected client.ListOption,
	do func(context.Context, *metav1.PartialObjectMetadata) error,
) error {
	var first error
	err := u.eachMetadata(ctx, kind, selected, func(page []metav1.PartialObjectMetadata) error {
		err := forEach(ctx, undeleted(page), do)
		if isFinal(err) || ctx.Err() != nil {
			return err
		}
		first = cmp.Or(first, err)
		return nil
	})
	return cmp.Or(err, first)
}

func (u *uninstaller) declare(ctx context.Context, definition *addonv1beta1.ClusterManagementAddOn, keep bool) error {
	patch := fmt.Sprintf(
		`{"metadata":{"annotations":{%q:"%t"}},"spec":{"installStrategy":{"type":%q,"placements":null}}}`,
		contract.AnnotationKeepProfiles, keep, addonv1beta1.AddonInstallStrategyManual)
	return u.client.Patch(ctx, definition, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// remove deletes an object by its UID, so that it never deletes another object of the same
// name.
func (u *uninstaller) remove(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	uid := object.GetUID()
	err := u.client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		return nil // another object of that name; the next step sees it
	}
	return kube.IgnoreGone(err)
}

// unmark removes the mark from a profile. The addon leaves unmarked profiles alone
// until a later installation publishes the cluster there again.
func (u *uninstaller) unmark(ctx context.Context, profile *metav1.PartialObjectMetadata) error {
	patch, err := kube.MergePatch(profile.ResourceVersion, map[string]any{"metadata": map[string]any{
		"labels": map[string]any{contract.LabelManagedBy: nil},
	}})
	if err != nil {
		return err
	}
	return kube.IgnoreGone(u.client.Patch(ctx, profile, patch))
}

// isFinal reports whether retrying cannot help.
func isFinal(err error) bool {
	return errors.Is(err, errGrantsStay) || isMissingRight(err) || apimeta.IsNoMatchError(err)
}

// missingRight matches how the API server refuses a request for which the user lacks the
// right (k8s.io/apiserver, pkg/endpoints/handlers/responsewriters).
var missingRight = regexp.MustCompile(`^\S+( "[^"]*")? is forbidden: User "[^"]*" cannot `)

// isMissingRight reports whether a request was refused because the hook lacks the right, which
// nothing grants later. Other refusals may end: that of a webhook or an admission policy,
// which have the same reason, and that of a token, which is renewed. Only the API server's
// message tells these apart.
func isMissingRight(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && missingRight.MatchString(status.Status().Message)
}
