package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// written are the types of the conditions that the manager writes.
var written = []string{contract.ConditionProfilesSynced, contract.ConditionCredentialsSynced}

// CacheOptions says what of ManagedClusterAddOns the manager's cache needs to hold:
// this addon's, and of others' conditions only the types, which show at which
// positions our own are. An addon from the cache must never be written as a whole.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&addonv1beta1.ManagedClusterAddOn{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", contract.AddonName),
			Transform: trimAddon,
		},
	}
}

func trimAddon(in any) (any, error) {
	addon, ok := in.(*addonv1beta1.ManagedClusterAddOn)
	if !ok {
		return in, nil
	}
	conditions := slices.Clone(addon.Status.Conditions)
	for i, condition := range conditions {
		if !slices.Contains(written, condition.Type) {
			conditions[i] = metav1.Condition{Type: condition.Type}
		}
	}
	return &addonv1beta1.ManagedClusterAddOn{
		TypeMeta:   addon.TypeMeta,
		ObjectMeta: kube.TrimMeta(addon.ObjectMeta),
		Status: addonv1beta1.ManagedClusterAddOnStatus{
			Conditions:  conditions,
			HealthCheck: addonv1beta1.HealthCheck{Mode: addon.Status.HealthCheck.Mode},
		},
	}, nil
}
