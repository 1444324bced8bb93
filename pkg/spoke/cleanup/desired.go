package cleanup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// addressed says whether the marker tells the agent of that addon to stop.
func addressed(marker *corev1.ConfigMap, addon types.UID) bool {
	return addon != "" && marker.Data[contract.CleanupMarkerUID] == string(addon)
}

// acknowledged says whether the agent of that addon has stopped.
func acknowledged(marker *corev1.ConfigMap, addon types.UID) bool {
	return addressed(marker, addon) && marker.Data[contract.CleanupMarkerStopped] == string(addon)
}

// withRequest returns the marker as the hook of that addon wants it: an
// acknowledgement of the same addon stays, another's goes.
func withRequest(marker *corev1.ConfigMap, addon types.UID) *corev1.ConfigMap {
	if addressed(marker, addon) {
		return marker
	}
	requested := marker.DeepCopy()
	requested.Data = map[string]string{contract.CleanupMarkerUID: string(addon)}
	return requested
}

// withAcknowledgement returns the marker as the agent of that addon leaves it
// once it has stopped.
func withAcknowledgement(marker *corev1.ConfigMap, addon types.UID) *corev1.ConfigMap {
	if acknowledged(marker, addon) {
		return marker
	}
	stopped := marker.DeepCopy()
	stopped.Data[contract.CleanupMarkerStopped] = string(addon)
	return stopped
}
