package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// The CRDs this concern rests on, by name.
const profileCRD = "clusterprofiles.multicluster.x-k8s.io"

// sourceCRDs are those without which a cache that is empty answers nothing.
var sourceCRDs = []string{
	"managedclusters.cluster.open-cluster-management.io",
	"managedclustersets.cluster.open-cluster-management.io",
	"managedclustersetbindings.cluster.open-cluster-management.io",
	"placements.cluster.open-cluster-management.io",
	"placementdecisions.cluster.open-cluster-management.io",
	"managedclusteraddons.addon.open-cluster-management.io",
}

// uncopied reads the cache's own objects, which must not be changed.
const uncopied = client.UnsafeDisableDeepCopy

// observe reads what the rule and the profile's content depend on. It reads
// caches only.
func observe(ctx context.Context, reader client.Reader, pair types.NamespacedName) (observed, error) {
	var o observed
	var err error
	if o.unserved, err = unserved(ctx, reader, sourceCRDs...); err != nil {
		return o, err
	}
	missing, err := unserved(ctx, reader, profileCRD)
	if err != nil {
		return o, err
	}
	o.profileAPI = len(missing) == 0
	o.profile, err = get(ctx, reader, pair, &inventoryv1alpha1.ClusterProfile{})
	if err != nil {
		return o, err
	}
	o.namespace, err = get(ctx, reader, types.NamespacedName{Name: pair.Namespace}, partial(namespaceKind))
	if err != nil {
		return o, err
	}
	o.cluster, err = get(ctx, reader, types.NamespacedName{Name: pair.Name}, &clusterv1.ManagedCluster{})
	if err != nil {
		return o, err
	}
	o.addon, err = get(ctx, reader, addonKey(pair.Name), &addonv1beta1.ManagedClusterAddOn{})
	if err != nil {
		return o, err
	}
	if o.bindings, err = observeBindings(ctx, reader, pair.Namespace); err != nil {
		return o, err
	}
	o.placements, err = observePlacements(ctx, reader, pair)
	return o, err
}

func observeBindings(ctx context.Context, reader client.Reader, namespace string) ([]observedBinding, error) {
	list := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), uncopied); err != nil {
		return nil, fmt.Errorf("listing set bindings: %w", err)
	}
	bindings := make([]observedBinding, 0, len(list.Items))
	for i := range list.Items {
		binding := &list.Items[i]
		set, err := get(ctx, reader, types.NamespacedName{Name: binding.Spec.ClusterSet}, &clusterv1beta2.ManagedClusterSet{})
		if err != nil {
			return nil, err
		}
		bindings = append(bindings, observedBinding{binding: binding, set: set})
	}
	slices.SortFunc(bindings, func(a, b observedBinding) int { return cmp.Compare(a.binding.Name, b.binding.Name) })
	return bindings, nil
}

func observePlacements(ctx context.Context, reader client.Reader, pair types.NamespacedName) ([]observedPlacement, error) {
	list := &clusterv1beta1.PlacementList{}
	if err := reader.List(ctx, list, client.InNamespace(pair.Namespace), client.MatchingFields{IndexPublishingPlacement: published}, uncopied); err != nil {
		return nil, fmt.Errorf("listing placements: %w", err)
	}
	placements := make([]observedPlacement, 0, len(list.Items))
	for i := range list.Items {
		placement, err := observePlacement(ctx, reader, &list.Items[i], pair.Name)
		if err != nil {
			return nil, err
		}
		placements = append(placements, placement)
	}
	slices.SortFunc(placements, func(a, b observedPlacement) int { return cmp.Compare(a.placement.Name, b.placement.Name) })
	return placements, nil
}

func observePlacement(ctx context.Context, reader client.Reader, placement *clusterv1beta1.Placement, cluster string) (observedPlacement, error) {
	o := observedPlacement{placement: placement}
	named := &clusterv1beta1.PlacementDecisionList{}
	if err := reader.List(ctx, named, client.InNamespace(placement.Namespace), client.MatchingFields{IndexDecisionByCluster: decisionKey(placement.Name, cluster)}, uncopied); err != nil {
		return o, fmt.Errorf("listing decisions for the cluster: %w", err)
	}
	o.decides = len(named.Items) > 0

	all := &clusterv1beta1.PlacementDecisionList{}
	if err := reader.List(ctx, all, client.InNamespace(placement.Namespace), client.MatchingFields{IndexDecisionByPlacement: placement.Name}, uncopied); err != nil {
		return o, fmt.Errorf("listing decisions: %w", err)
	}
	o.slices = len(all.Items)
	for i := range all.Items {
		for _, decision := range all.Items[i].Status.Decisions {
			if decision.ClusterName != "" {
				o.decisions++
			}
		}
		o.newest = newer(o.newest, all.Items[i].ResourceVersion)
	}
	return o, nil
}

// newer returns the later of two resource versions. Ones that cannot be compared
// are told apart all the same.
func newer(a, b string) string {
	if a == "" {
		return b
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	switch {
	case err != nil:
		return max(a, b)
	case order >= 0:
		return a
	default:
		return b
	}
}

// unserved returns which of the given CRDs are missing or on their way out. A
// CRD's deletion takes its objects first, so what disappears meanwhile says
// nothing.
func unserved(ctx context.Context, reader client.Reader, crds ...string) ([]string, error) {
	var missing []string
	for _, name := range crds {
		crd, err := get(ctx, reader, types.NamespacedName{Name: name}, partial(crdKind))
		if err != nil {
			return nil, err
		}
		if crd == nil || crd.DeletionTimestamp != nil {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// get reads one object, which must not be changed; nil and no error mean that
// there is none.
func get[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, into T) (T, error) {
	var none T
	err := reader.Get(ctx, key, into, uncopied)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", into, key, err)
	default:
		return into, nil
	}
}

func addonKey(cluster string) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster, Name: contract.AddonName}
}

var (
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	crdKind       = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// partial returns an empty object of a kind of which only metadata is read.
func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(kind)
	return obj
}
