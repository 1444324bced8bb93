package ownwork

import (
	"slices"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// CleanupFinalizers are those with which the framework waits for the clean-up of a cluster,
// and of its manifests on a hosting cluster.
func CleanupFinalizers() []string {
	return []string{
		addonv1beta1.AddonPreDeleteHookFinalizer,
		addonv1beta1.AddonHostingPreDeleteHookFinalizer,
		addonv1beta1.AddonHostingManifestFinalizer,
	}
}

// WaitsForCleanup reports whether the addon has one of the framework's finalizers.
func WaitsForCleanup(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(addon.Finalizers, func(f string) bool { return slices.Contains(CleanupFinalizers(), f) })
}

// IsHosted reports whether an addon has manifests on a hosting cluster.
func IsHosted(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.Contains(addon.Finalizers, addonv1beta1.AddonHostingManifestFinalizer) ||
		slices.Contains(addon.Finalizers, addonv1beta1.AddonHostingPreDeleteHookFinalizer)
}
