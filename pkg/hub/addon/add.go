package addon

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/approval"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/release"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Add adds addon-framework, which runs on the elected leader, and the controllers
// hub.csr-approval and hub.cleanup-timeout. The manager's cache must be configured by
// CacheOptions and hold the deletion times of the ManagedClusterAddOns and ManagedClusters,
// and the ManagedClusters' spec.hubAcceptsClient and condition Available. The returned
// source is that of the condition ConfigurationApplied.
func Add(ctx context.Context, mgr manager.Manager, opts Options) (conditions.Source, error) {
	outcomes := configuration.NewOutcomes(mgr.GetCache())
	err := mgr.Add(&framework{
		cfg: mgr.GetConfig(), opts: opts, shared: mgr.GetCache(), client: mgr.GetClient(), live: mgr.GetAPIReader(),
		outcomes: outcomes,
	})
	if err != nil {
		return nil, err
	}
	if err := approval.Add(ctx, mgr); err != nil {
		return nil, err
	}
	return outcomes, release.Add(mgr, opts.Release)
}

// CacheOptions returns which ManagedClusterAddOns, which addon-framework reads from the
// manager's cache, and which certificate requests that cache must hold.
func CacheOptions() map[client.Object]cache.ByObject {
	byObject := approval.CacheOptions()
	byObject[&addonv1beta1.ManagedClusterAddOn{}] = cache.ByObject{
		Field:     fields.OneTermEqualSelector(metav1.ObjectNameField, contract.AddonName),
		Transform: kube.Trimmed((&addonTrimmer{}).trim),
	}
	return byObject
}
