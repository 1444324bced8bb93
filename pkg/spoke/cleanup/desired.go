package cleanup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// addressed reports whether the marker tells the agent of that addon to stop.
func addressed(marker *corev1.ConfigMap, addon types.UID) bool {
	return addon != "" && marker.Data[contract.CleanupMarkerUID] == string(addon)
}

// acknowledged reports whether the agent of that addon has confirmed that it
// stopped.
func acknowledged(marker *corev1.ConfigMap, addon types.UID) bool {
	return addressed(marker, addon) && marker.Data[contract.CleanupMarkerStopped] == string(addon)
}

// withRequest returns a marker that does not address the agent of that addon with the hook's request
// to it. It drops the acknowledgement of another.
func withRequest(marker *corev1.ConfigMap, addon types.UID) *corev1.ConfigMap {
	requested := marker.DeepCopy()
	requested.Data = map[string]string{contract.CleanupMarkerUID: string(addon)}
	return requested
}

// withAcknowledgement returns the marker with the confirmation that the agent of
// that addon has stopped.
func withAcknowledgement(marker *corev1.ConfigMap, addon types.UID) *corev1.ConfigMap {
	stopped := marker.DeepCopy()
	stopped.Data[contract.CleanupMarkerStopped] = string(addon)
	return stopped
}
