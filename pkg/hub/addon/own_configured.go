package addon

import (
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addoninformers "open-cluster-management.io/api/client/addon/informers/externalversions/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
)

// indexOwnConfigurations maps configurations to the addons that name them themselves. For
// these, addon-framework must write the hash of the configuration into the status. For others
// it would write only the generation, which nothing reads, with a write per cluster and edit.
func indexOwnConfigurations(obj any) ([]string, error) {
	if addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn); !ok || !configuration.HasOwn(addon) {
		return nil, nil
	}
	return index.IndexAddonByConfig(obj)
}

// ownConfigured provides the framework with an informer of the addons that name a
// configuration themselves.
type ownConfigured struct {
	addoninformers.ManagedClusterAddOnInformer
}

// Informer returns the addons' informer.
func (o ownConfigured) Informer() toolscache.SharedIndexInformer {
	return ownConfiguredInformer{o.ManagedClusterAddOnInformer.Informer()}
}

type ownConfiguredInformer struct {
	toolscache.SharedIndexInformer
}

// AddEventHandler adds a handler that receives only addons that name a configuration.
func (i ownConfiguredInformer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(toolscache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn)
			return ok && configuration.HasOwn(addon)
		},
		Handler: handler,
	})
}
