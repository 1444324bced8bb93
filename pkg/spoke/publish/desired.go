package publish

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// observed is the property and the claim of one name, each of which may be nil, and the reserved
// names.
type observed struct {
	property *property.Property
	claim    *clusterv1alpha1.ClusterClaim
	reserved property.Reserved
}

// foreign reports whether the name is taken by a claim that is not ours.
func (o observed) foreign() bool {
	return o.claim != nil && o.claim.Labels[contract.LabelManagedBy] != contract.ManagedBy
}

// desiredClaim returns the claim that should exist, or nil if none of ours should.
// It keeps labels, annotations and owner references that others added.
func desiredClaim(seen observed, version string) *clusterv1alpha1.ClusterClaim {
	if seen.property == nil || seen.property.Obstacle(seen.reserved) != property.ObstacleNone {
		return nil
	}
	claim := &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: seen.property.Name}}
	if seen.claim != nil {
		claim = seen.claim.DeepCopy()
	}
	metav1.SetMetaDataLabel(&claim.ObjectMeta, contract.LabelManagedBy, contract.ManagedBy)
	claim.OwnerReferences = withOwner(claim.OwnerReferences, metav1.OwnerReference{
		APIVersion: property.GroupVersionKind(version).GroupVersion().String(),
		Kind:       property.Kind,
		Name:       seen.property.Name,
		UID:        seen.property.UID,
	})
	claim.Spec.Value = seen.property.Value
	return claim
}

// isAsDesired reports whether nothing is to be written. Either claim may be nil.
func isAsDesired(want, claim *clusterv1alpha1.ClusterClaim) bool {
	return equality.Semantic.DeepEqual(want, claim)
}

// withOwner returns the references with owner in place of all earlier references to that
// property, of any version and UID, and all others unchanged.
func withOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	toProperty := func(ref metav1.OwnerReference) bool {
		version, err := schema.ParseGroupVersion(ref.APIVersion)
		return err == nil && version.Group == property.Group && ref.Kind == owner.Kind && ref.Name == owner.Name
	}
	at := slices.IndexFunc(refs, toProperty)
	if at < 0 {
		return append(refs, owner)
	}
	rest := slices.DeleteFunc(slices.Clone(refs[at+1:]), toProperty)
	return append(append(slices.Clone(refs[:at]), owner), rest...)
}
