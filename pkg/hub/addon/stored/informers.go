package stored

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// definitionName is the name of the ManagedClusterAddOns' CustomResourceDefinition.
const definitionName = "managedclusteraddons." + addonv1beta1.GroupName

// NewInformer makes the informers of the manager's cache (cache.Options.NewInformer).
type NewInformer = func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer

// Informers returns how the informers of a cache are made that reads ManagedClusterAddOns as
// the hub stores them. live must be able to read CustomResourceDefinitions. The error says
// that it is not known in which version that is.
func Informers(ctx context.Context, cfg *rest.Config, live client.Reader) (NewInformer, error) {
	stored, err := storedVersion(ctx, live)
	if err != nil || stored != addonv1alpha1.GroupVersion.Version {
		return toolscache.NewSharedIndexInformer, err
	}
	addons, err := addonclient.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return func(
		served toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		if _, ok := kind.(*addonv1beta1.ManagedClusterAddOn); ok {
			reader := &addonReader{client: addons, served: toolscache.ToListerWatcherWithContext(served)}
			served = &toolscache.ListWatch{ListWithContextFunc: reader.list, WatchFuncWithContext: reader.watch}
		}
		return toolscache.NewSharedIndexInformer(served, kind, resync, indexers)
	}, nil
}

func storedVersion(ctx context.Context, live client.Reader) (string, error) {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(kube.CRDKind)
	if err := live.Get(ctx, client.ObjectKey{Name: definitionName}, definition); err != nil {
		return "", fmt.Errorf("reading in which version ManagedClusterAddOns are stored: %w", err)
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return "", err
	}
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if stores, _, _ := unstructured.NestedBool(fields, "storage"); stores {
			name, _, err := unstructured.NestedString(fields, "name")
			return name, err
		}
	}
	return "", fmt.Errorf("CustomResourceDefinition %s stores no version", definitionName)
}

// addonReader reads this addon's ManagedClusterAddOns in v1alpha1 whenever the hub serves
// that, and otherwise in v1beta1. Each list and each watch tries v1alpha1 first: a CRD that
// is recreated, or does not serve the version for a moment, is not found either, and one
// more request every few minutes costs nothing.
type addonReader struct {
	client addonclient.Interface
	served toolscache.ListerWatcherWithContext // of v1beta1
}

func (s *addonReader) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := s.client.AddonV1alpha1().ManagedClusterAddOns(metav1.NamespaceAll).List(ctx, ofThisAddon(opts))
	switch {
	case err == nil:
		return fromStoredList(list)
	case apierrors.IsNotFound(err):
		return s.served.ListWithContext(ctx, opts)
	default:
		return nil, err
	}
}

func (s *addonReader) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	stored := ofThisAddon(opts)
	stored.AllowWatchBookmarks = true
	events, err := s.client.AddonV1alpha1().ManagedClusterAddOns(metav1.NamespaceAll).Watch(ctx, stored)
	switch {
	case err == nil:
		return watch.Filter(events, fromStoredEvent), nil
	case apierrors.IsNotFound(err):
		return s.served.WatchWithContext(ctx, opts)
	default:
		return nil, err
	}
}

func ofThisAddon(opts metav1.ListOptions) metav1.ListOptions {
	opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, contract.AddonName).String()
	return opts
}

func fromStoredList(list *addonv1alpha1.ManagedClusterAddOnList) (runtime.Object, error) {
	converted := &addonv1beta1.ManagedClusterAddOnList{ListMeta: list.ListMeta}
	converted.Items = make([]addonv1beta1.ManagedClusterAddOn, len(list.Items))
	for i := range list.Items {
		if err := fromStored(&list.Items[i], &converted.Items[i]); err != nil {
			return nil, err
		}
	}
	return converted, nil
}

// fromStoredEvent converts the addon of an event; a bookmark has one, too.
func fromStoredEvent(event watch.Event) (watch.Event, bool) {
	stored, ok := event.Object.(*addonv1alpha1.ManagedClusterAddOn)
	if !ok {
		return event, true // what went wrong
	}
	converted := &addonv1beta1.ManagedClusterAddOn{}
	if err := fromStored(stored, converted); err != nil {
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}, true
	}
	event.Object = converted
	return event, true
}

// fromStored converts an addon as Open Cluster Management's webhook does (v1.2,
// pkg/addon/webhook/v1beta1): v1beta1 has no field for the namespace that v1alpha1 names.
func fromStored(stored *addonv1alpha1.ManagedClusterAddOn, addon *addonv1beta1.ManagedClusterAddOn) error {
	err := addonv1beta1.Convert_v1alpha1_ManagedClusterAddOn_To_v1beta1_ManagedClusterAddOn(stored, addon, nil)
	if err != nil {
		return fmt.Errorf("converting ManagedClusterAddOn %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	addon.TypeMeta = metav1.TypeMeta{Kind: "ManagedClusterAddOn", APIVersion: addonv1beta1.GroupVersion.String()}
	namespace := stored.Spec.InstallNamespace //nolint:staticcheck // what is deprecated is converted, too
	if namespace != "" {
		if addon.Annotations == nil {
			addon.Annotations = map[string]string{}
		}
		addon.Annotations[addonv1beta1.InstallNamespaceAnnotation] = namespace
	}
	return nil
}
