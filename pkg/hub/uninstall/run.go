package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// pollInterval is how often the hub is observed.
	pollInterval = time.Second

	// pageSize is how many objects one list request returns. The objects of
	// thousands of clusters in one response would not fit into the hook's memory.
	pageSize = 250
)

// Options configures the uninstallation.
type Options struct {
	// Timeout limits the whole uninstallation.
	Timeout time.Duration

	// KeepProfiles leaves the ClusterProfiles in place.
	KeepProfiles bool
}

// Run removes the addon from every cluster of the hub and returns when it is gone.
// Its error says what is left; running it again continues from there.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	scheme := runtime.NewScheme()
	if err := addonv1beta1.Install(scheme); err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	u := &uninstaller{client: c, keepProfiles: opts.KeepProfiles, every: pollInterval, pageSize: pageSize}
	return u.run(ctx, opts.Timeout)
}

type uninstaller struct {
	client       client.Client
	keepProfiles bool
	every        time.Duration
	pageSize     int64

	// progress is the last progress message.
	progress string

	// idle counts how many times in a row nothing was left to do.
	idle int
}

func (u *uninstaller) run(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	var lastErr error
	err := wait.PollUntilContextCancel(ctx, u.every, true, func(ctx context.Context) (bool, error) {
		done, err := u.takeStep(ctx)
		if err != nil && ctx.Err() == nil {
			lastErr = err
		}
		if isFinal(err) {
			return false, err
		}
		if err != nil {
			log.FromContext(ctx).Error(err, "Retrying")
		} else {
			lastErr = nil
		}
		return done, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("after %s still waiting for %s", timeout, u.progress), lastErr)
	}
	return err
}

// takeStep takes the next step. It returns true when it found nothing to do twice
// in a row.
func (u *uninstaller) takeStep(ctx context.Context) (bool, error) {
	o, err := u.observe(ctx)
	if err != nil {
		return false, err
	}
	step := next(o, u.keepProfiles)
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
	log.FromContext(ctx).Info("Waiting for " + s.waitingFor)
}

func (u *uninstaller) observe(ctx context.Context) (observed, error) {
	o := observed{definition: &addonv1beta1.ClusterManagementAddOn{}}
	err := u.client.Get(ctx, client.ObjectKey{Name: contract.AddonName}, o.definition)
	if apierrors.IsNotFound(err) {
		o.definition, err = nil, nil
	}
	if err != nil {
		return observed{}, fmt.Errorf("reading ClusterManagementAddOn %s: %w", contract.AddonName, err)
	}
	if o.addons, err = u.observeAddons(ctx); err != nil {
		return observed{}, fmt.Errorf("listing ManagedClusterAddOns %s: %w", contract.AddonName, err)
	}
	if o.profiles, err = u.observeProfiles(ctx); err != nil {
		return observed{}, err
	}
	o.grants, err = u.observeGrants(ctx)
	return o, err
}

// observeGrants returns the namespaces of the manager's own RoleBindings. The
// manager deletes them after everything else that copying tokens has left.
func (u *uninstaller) observeGrants(ctx context.Context) ([]string, error) {
	var namespaces []string
	newPage := func() *metav1.PartialObjectMetadataList {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBindingList"))
		return page
	}
	err := eachPage(ctx, u, newPage, func(page *metav1.PartialObjectMetadataList) {
		for _, binding := range page.Items {
			if binding.Name == contract.TokenSourceRole || binding.Name == contract.TokenTargetRole {
				namespaces = append(namespaces, binding.Namespace)
			}
		}
	}, client.MatchingLabels{contract.LabelManagedBy: contract.ManagedBy, contract.LabelCredential: "true"})
	if err != nil {
		return nil, fmt.Errorf("listing RoleBindings: %w", err)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), nil
}

// observeAddons returns the addon of every cluster, reduced to what the next step
// depends on.
func (u *uninstaller) observeAddons(ctx context.Context) ([]addonv1beta1.ManagedClusterAddOn, error) {
	var addons []addonv1beta1.ManagedClusterAddOn
	newPage := func() *addonv1beta1.ManagedClusterAddOnList { return &addonv1beta1.ManagedClusterAddOnList{} }
	err := eachPage(ctx, u, newPage, func(page *addonv1beta1.ManagedClusterAddOnList) {
		for i := range page.Items {
			addons = append(addons, trimAddon(&page.Items[i]))
		}
	}, client.MatchingFields{metav1.ObjectNameField: contract.AddonName})
	return addons, err
}

func trimAddon(full *addonv1beta1.ManagedClusterAddOn) addonv1beta1.ManagedClusterAddOn {
	addon := addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, DeletionTimestamp: full.DeletionTimestamp,
	}}
	condition := apimeta.FindStatusCondition(full.Status.Conditions, contract.ConditionProfilesSynced)
	if condition != nil {
		addon.Status.Conditions = []metav1.Condition{*condition}
	}
	return addon
}

// eachPage lists objects page by page, each into a new list: decoding into a used
// one would merge the pages.
func eachPage[L client.ObjectList](
	ctx context.Context, u *uninstaller, newPage func() L, take func(L), opts ...client.ListOption,
) error {
	for token := ""; ; {
		page := newPage()
		paged := append(slices.Clone(opts), client.Limit(u.pageSize), client.Continue(token))
		if err := u.client.List(ctx, page, paged...); err != nil {
			return err
		}
		take(page)
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

// observeProfiles returns the marked profiles that are not being deleted. One that
// only waits for somebody's finalizer is not waited for. A hub without the API has
// no profiles.
func (u *uninstaller) observeProfiles(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	var profiles []metav1.PartialObjectMetadata
	newPage := func() *metav1.PartialObjectMetadataList {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(inventoryv1alpha1.GroupVersion.WithKind("ClusterProfileList"))
		return page
	}
	err := eachPage(ctx, u, newPage, func(page *metav1.PartialObjectMetadataList) {
		for _, profile := range page.Items {
			if profile.DeletionTimestamp.IsZero() {
				profile.ManagedFields = nil
				profiles = append(profiles, profile)
			}
		}
	}, client.MatchingLabels{
		contract.LabelManagedBy:      contract.ManagedBy,
		contract.LabelClusterManager: contract.ClusterManagerName,
	})
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing ClusterProfiles: %w", err)
	}
	return profiles, nil
}

func (u *uninstaller) apply(ctx context.Context, o observed, s step) error {
	if s.declare {
		return u.declare(ctx, o.definition, s.keep)
	}
	for i := range s.deleteAddons {
		if err := u.remove(ctx, &s.deleteAddons[i]); err != nil {
			return err
		}
	}
	for i := range s.deleteProfiles {
		if err := u.remove(ctx, &s.deleteProfiles[i]); err != nil {
			return err
		}
	}
	for i := range s.unmarkProfiles {
		if err := u.unmark(ctx, &s.unmarkProfiles[i]); err != nil {
			return err
		}
	}
	return nil
}

func (u *uninstaller) declare(ctx context.Context, definition *addonv1beta1.ClusterManagementAddOn, keep bool) error {
	patch := fmt.Sprintf(
		`{"metadata":{"annotations":{%q:"%t"}},"spec":{"installStrategy":{"type":%q,"placements":null}}}`,
		contract.AnnotationKeepProfiles, keep, addonv1beta1.AddonInstallStrategyManual)
	return u.client.Patch(ctx, definition, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// remove deletes an object by its UID, so that never another object of the same
// name is deleted.
func (u *uninstaller) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := u.client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		return nil // another object of that name; the next step sees it
	}
	return client.IgnoreNotFound(err)
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
	return client.IgnoreNotFound(u.client.Patch(ctx, profile, patch))
}

// isFinal reports whether retrying cannot help.
func isFinal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apimeta.IsNoMatchError(err)
}
