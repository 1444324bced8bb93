package inventory

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guardChanged compares everything but the status of an object that the guard reads: the
// ClusterManagementAddOn's status counts the progress of every rollout, and each count
// would enqueue every pair. Generations count changes of the spec; a kind without
// generations has no status, either.
func guardChanged(before, after client.Object) bool {
	if before.GetGeneration() == 0 || after.GetGeneration() == 0 {
		return before.GetResourceVersion() != after.GetResourceVersion() // not for a resync
	}
	return before.GetGeneration() != after.GetGeneration() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
