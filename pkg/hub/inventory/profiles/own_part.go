package profiles

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// OwnPart identifies the part of a profile that this addon writes, as it is cached. Others
// may write labels, conditions, their own properties and access providers as often as they
// like: that is no reason to delay writing a property.
func OwnPart(profile *inventoryv1alpha1.ClusterProfile) string {
	copied := copiedBefore(profile)
	labels := map[string]string{}
	for key, value := range profile.Labels {
		if isReserved(key) || slices.Contains(copied, key) {
			labels[key] = value
		}
	}
	var conditions []metav1.Condition
	for _, condition := range profile.Status.Conditions {
		if slices.ContainsFunc(profileConditions, func(s shownCondition) bool { return s.target == condition.Type }) {
			conditions = append(conditions, condition)
		}
	}
	var access []inventoryv1alpha1.AccessProvider
	for _, provider := range profile.Status.AccessProviders {
		if provider.Name == contract.AccessProviderName || provider.Name == contract.DirectAccessProviderName {
			access = append(access, provider)
		}
	}
	var properties []inventoryv1alpha1.Property
	authors := authorshipOf(profile)
	for _, property := range profile.Status.Properties {
		if authors.isOurs(property.Name) {
			properties = append(properties, property)
		}
	}
	return kube.Fingerprint(profile,
		labels, profile.Annotations[contract.AnnotationCopiedLabels], profile.Annotations[contract.AnnotationProperties],
		profile.Spec.DisplayName, profile.Status.Version, conditions, properties, access)
}
