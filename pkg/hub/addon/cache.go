package addon

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/approval"
)

// CacheOptions returns which ManagedClusterAddOns, which addon-framework reads from the
// manager's cache, and which certificate requests that cache must hold.
func CacheOptions() map[client.Object]cache.ByObject {
	byObject := approval.CacheOptions()
	byObject[&addonv1beta1.ManagedClusterAddOn{}] = cache.ByObject{
		Field:     fields.OneTermEqualSelector(metav1.ObjectNameField, contract.AddonName),
		Transform: (&addonTrimmer{}).trim,
	}
	return byObject
}
