package decisions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Transform cuts a PlacementDecision of SIG-Multicluster down to what is read, and leaves
// other kinds to the next. They may not be served yet, so nobody can configure how they
// are cached, nor have only this addon's cached.
func Transform(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if decision, ok := in.(*inventoryv1alpha1.PlacementDecision); ok {
			return trimDecision(decision), nil
		}
		return next(in)
	}
}

// trimDecision keeps of a PlacementDecision of this addon what it writes, and of another's
// what it is known by.
func trimDecision(decision *inventoryv1alpha1.PlacementDecision) *inventoryv1alpha1.PlacementDecision {
	trimmed := &inventoryv1alpha1.PlacementDecision{
		TypeMeta: decision.TypeMeta, ObjectMeta: kube.TrimMeta(decision.ObjectMeta),
	}
	trimmed.Labels = nil
	for _, key := range ourLabels {
		if value, ok := decision.Labels[key]; ok {
			if trimmed.Labels == nil {
				trimmed.Labels = map[string]string{}
			}
			trimmed.Labels[key] = value
		}
	}
	if !isOurs(decision) {
		if owner := metav1.GetControllerOf(decision); owner != nil {
			trimmed.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		return trimmed
	}
	trimmed.Decisions = slices.Clone(decision.Decisions) // decoding leaves room for more
	trimmed.SchedulerName = decision.SchedulerName
	return trimmed
}

// Indexes by which slices are found.
const (
	// IndexSliceByBase finds what has the name of a Placement's slices, by the base of
	// these names, whoever made it.
	IndexSliceByBase = "decisions.sliceByBase"

	// IndexSliceByCluster finds this addon's slices by the clusters they refer to. Those
	// that are being deleted do not count.
	IndexSliceByCluster = "decisions.sliceByCluster"

	// IndexForeignByKey finds what somebody else made, by its decision-key.
	IndexForeignByKey = "decisions.foreignByKey"
)

// indexes are all of the above.
var indexes = []struct {
	name    string
	extract client.IndexerFunc
}{
	{IndexSliceByBase, indexSliceByBase},
	{IndexSliceByCluster, indexSliceByCluster},
	{IndexForeignByKey, indexForeignByKey},
}

func indexSliceByBase(obj client.Object) []string {
	if base := parseName(obj.GetName()); base != "" {
		return []string{base}
	}
	return nil
}

func indexSliceByCluster(obj client.Object) []string {
	decision, ok := obj.(*inventoryv1alpha1.PlacementDecision)
	if !ok || !isOurs(decision) || decision.DeletionTimestamp != nil {
		return nil
	}
	return kube.SortedNames(referredClusters(decision))
}

func indexForeignByKey(obj client.Object) []string {
	decision, ok := obj.(*inventoryv1alpha1.PlacementDecision)
	if !ok || isOurs(decision) {
		return nil
	}
	if key := decision.Labels[inventoryv1alpha1.DecisionKeyLabel]; key != "" {
		return []string{key}
	}
	return nil
}
