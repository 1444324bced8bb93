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
	// lookEvery is how often the hub is looked at.
	lookEvery = time.Second

	// pageSize is how many objects are asked for at a time: what thousands of
	// clusters have at once would not fit into the hook's memory.
	pageSize = 250
)

// Options say how to uninstall.
type Options struct {
	// Timeout is how long all of it may take.
	Timeout time.Duration

	// KeepProfiles leaves the ClusterProfiles in place.
	KeepProfiles bool
}

// Run takes the addon off every cluster of the hub and returns when it is gone.
// Its error says what is left; running it again goes on from there.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	scheme := runtime.NewScheme()
	if err := addonv1beta1.Install(scheme); err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return (&uninstaller{client: c, keepProfiles: opts.KeepProfiles, every: lookEvery, pageSize: pageSize}).run(ctx, opts.Timeout)
}

type uninstaller struct {
	client       client.Client
	keepProfiles bool
	every        time.Duration
	pageSize     int64

	// told is the last line of progress.
	told string

	// quiet is how many times in a row nothing was left to do.
	quiet int
}

func (u *uninstaller) run(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	var problem error
	err := wait.PollUntilContextCancel(ctx, u.every, true, func(ctx context.Context) (bool, error) {
		done, err := u.look(ctx)
		if err != nil && ctx.Err() == nil {
			problem = err
		}
		if isFinal(err) {
			return false, err
		}
		if err != nil {
			log.FromContext(ctx).Error(err, "Trying again")
		} else {
			problem = nil
		}
		return done, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("after %s still waiting for %s", timeout, u.told), problem)
	}
	return err
}

// look takes one step; it is done when twice in a row there was none to take.
func (u *uninstaller) look(ctx context.Context) (bool, error) {
	o, err := u.observe(ctx)
	if err != nil {
		return false, err
	}
	step := next(o, u.keepProfiles)
	u.tell(ctx, step)
	if step.done() {
		u.quiet++
		return u.quiet > 1, nil
	}
	u.quiet = 0
	return false, u.apply(ctx, o, step)
}

func (u *uninstaller) tell(ctx context.Context, s step) {
	if s.waitingFor == u.told {
		return
	}
	u.told = s.waitingFor
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
	o.rights, err = u.observeRights(ctx)
	return o, err
}

// observeRights returns where the manager has RoleBindings of its own. They go last
// of all that copying tokens leaves.
func (u *uninstaller) observeRights(ctx context.Context) ([]string, error) {
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

// observeAddons returns this addon on every cluster, cut down to what is looked
// at.
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
	if condition := apimeta.FindStatusCondition(full.Status.Conditions, contract.ConditionProfilesSynced); condition != nil {
		addon.Status.Conditions = []metav1.Condition{*condition}
	}
	return addon
}

// eachPage lists objects a page at a time. Each page is new: what is decoded into
// a used one joins what is in it.
func eachPage[L client.ObjectList](ctx context.Context, u *uninstaller, newPage func() L, take func(L), opts ...client.ListOption) error {
	for token := ""; ; {
		page := newPage()
		if err := u.client.List(ctx, page, append(slices.Clone(opts), client.Limit(u.pageSize), client.Continue(token))...); err != nil {
			return err
		}
		take(page)
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

// observeProfiles returns the marked profiles that nobody is deleting yet; one
// that waits for a finalizer of somebody else is theirs. A hub without the API has none.
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
	}, client.MatchingLabels{contract.LabelManagedBy: contract.ManagedBy, contract.LabelClusterManager: contract.ClusterManagerName})
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
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%t"}},"spec":{"installStrategy":{"type":%q,"placements":null}}}`,
		contract.AnnotationKeepProfiles, keep, addonv1beta1.AddonInstallStrategyManual)
	return u.client.Patch(ctx, definition, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// remove deletes the very object that was seen.
func (u *uninstaller) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := u.client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		return nil // another object of that name; the next look sees it
	}
	return client.IgnoreNotFound(err)
}

// unmark takes the mark off a profile: unmarked, it is left alone by everything of
// this addon until a later installation publishes that cluster there again.
func (u *uninstaller) unmark(ctx context.Context, profile *metav1.PartialObjectMetadata) error {
	patch, err := kube.MergePatch(profile.ResourceVersion, map[string]any{"metadata": map[string]any{
		"labels": map[string]any{contract.LabelManagedBy: nil},
	}})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(u.client.Patch(ctx, profile, patch))
}

// isFinal is true for errors that no waiting mends.
func isFinal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apimeta.IsNoMatchError(err)
}
