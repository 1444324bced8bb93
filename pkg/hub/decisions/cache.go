package decisions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// CacheOptions returns which part of PlacementDecisions of SIG-Multicluster the manager's
// cache must hold: the fields that are read, also of others', which may have the name or the
// key of this addon's.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&inventoryv1alpha1.PlacementDecision{}: {Transform: kube.Trimmed(trimDecision)},
	}
}

// trimDecision keeps the part of this addon's PlacementDecision that the addon writes, and
// the part of another's that identifies it.
func trimDecision(decision *inventoryv1alpha1.PlacementDecision) *inventoryv1alpha1.PlacementDecision {
	trimmed := &inventoryv1alpha1.PlacementDecision{
		TypeMeta: decision.TypeMeta, ObjectMeta: kube.TrimMeta(decision.ObjectMeta),
	}
	trimmed.Labels = kube.OnlyLabels(decision.Labels, ourLabels...)
	if !isOurs(decision) {
		if owner := metav1.GetControllerOf(decision); owner != nil {
			trimmed.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		return trimmed
	}
	trimmed.Decisions = slices.Clone(decision.Decisions) // decoding leaves spare capacity
	trimmed.SchedulerName = decision.SchedulerName
	return trimmed
}

// Indexes that find slices.
const (
	// IndexSliceByBase finds PlacementDecisions that have the name of a Placement's slices, by
	// the base of these names, including other clients' objects.
	IndexSliceByBase = "decisions.sliceByBase"

	// IndexSliceByCluster finds this addon's slices by the clusters they refer to, except
	// those that are being deleted.
	IndexSliceByCluster = "decisions.sliceByCluster"

	// IndexForeignByKey finds others' PlacementDecisions by their decision-key.
	IndexForeignByKey = "decisions.foreignByKey"
)

// indexes are all of the above.
var indexes = []struct {
	name    string
	extract client.IndexerFunc
}{
	{IndexSliceByBase, kube.Indexed(byBase)},
	{IndexSliceByCluster, kube.Indexed(byCluster)},
	{IndexForeignByKey, kube.Indexed(foreignByKey)},
}

func byBase(decision *inventoryv1alpha1.PlacementDecision) []string {
	return []string{parseName(decision.Name)}
}

func byCluster(decision *inventoryv1alpha1.PlacementDecision) []string {
	if !isOurs(decision) || decision.DeletionTimestamp != nil {
		return nil
	}
	return kube.SortedNames(referredClusters(decision))
}

func foreignByKey(decision *inventoryv1alpha1.PlacementDecision) []string {
	if isOurs(decision) {
		return nil
	}
	return []string{decision.Labels[inventoryv1alpha1.DecisionKeyLabel]}
}
