package selection

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// sources are the kinds without which an empty cache means nothing, by their CRD.
var sources = []struct {
	crd    string
	kind   schema.GroupVersionKind
	object client.Object
}{
	{rule.ClusterCRD, clusterKind("v1", "ManagedCluster"), &clusterv1.ManagedCluster{}},
	{rule.SetCRD, clusterKind("v1beta2", "ManagedClusterSet"), &clusterv1beta2.ManagedClusterSet{}},
	{rule.BindingCRD, clusterKind("v1beta2", "ManagedClusterSetBinding"), &clusterv1beta2.ManagedClusterSetBinding{}},
	{rule.PlacementCRD, clusterKind("v1beta1", "Placement"), &clusterv1beta1.Placement{}},
	{rule.DecisionCRD, clusterKind("v1beta1", "PlacementDecision"), &clusterv1beta1.PlacementDecision{}},
	{rule.AddonCRD, addonKind, &addonv1beta1.ManagedClusterAddOn{}},
}

var addonKind = schema.GroupVersionKind{
	Group: addonv1beta1.GroupName, Version: "v1beta1", Kind: "ManagedClusterAddOn",
}

func clusterKind(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: clusterv1.GroupName, Version: version, Kind: kind}
}

// CRDs names the CRDs of everything the rule reads.
func CRDs() []string {
	names := []string{rule.ProfileCRD}
	for _, source := range sources {
		names = append(names, source.crd)
	}
	return names
}

// ProfileKind is the kind without which Rule.Prepare fails.
var ProfileKind = inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile")

// Kinds returns the kinds that must be served before the rule can be prepared without
// ClusterProfiles.
func Kinds() watch.Kinds {
	kinds := watch.Kinds{}
	for _, source := range sources {
		kinds[source.crd] = source.kind
	}
	return kinds
}

// observe reads everything about a pair that the rule needs. It reads caches only.
func (r *Rule) observe(ctx context.Context, pair types.NamespacedName) (rule.Observation, error) {
	o := rule.Observation{Name: pair.Name}
	var err error
	reader := r.cache
	o.ExclusiveSetsOnly = r.ExclusiveSetsOnly
	if err := r.observeDefinitions(ctx, &o); err != nil {
		return o, err
	}
	o.Profile, err = kube.Get(ctx, reader, pair, &inventoryv1alpha1.ClusterProfile{})
	if err != nil && !kube.IsUncached(err) {
		return o, err
	}
	namespace := types.NamespacedName{Name: pair.Namespace}
	if o.Namespace, err = kube.Get(ctx, reader, namespace, kube.Partial(kube.NamespaceKind)); err != nil {
		return o, err
	}
	cluster := types.NamespacedName{Name: pair.Name}
	if o.Cluster, err = kube.Get(ctx, reader, cluster, &clusterv1.ManagedCluster{}); err != nil {
		return o, err
	}
	addon := types.NamespacedName{Namespace: pair.Name, Name: contract.AddonName}
	if o.Addon, err = kube.Get(ctx, reader, addon, &addonv1beta1.ManagedClusterAddOn{}); err != nil {
		return o, err
	}
	if o.Bindings, err = observeBindings(ctx, reader, pair.Namespace); err != nil {
		return o, err
	}
	o.Placements, err = r.observePlacements(ctx, pair)
	o.Lost = r.settling.lost(pair.Namespace, o.Placements)
	return o, err
}

// observeDefinitions reads how far the caches can be trusted, which are read after it.
func (r *Rule) observeDefinitions(ctx context.Context, o *rule.Observation) error {
	o.Lagging = r.definitions.Lagging()
	for _, source := range sources {
		state, err := r.definitions.State(ctx, r.cache, source.crd)
		if err != nil {
			return err
		}
		switch state {
		case watch.Unserved:
			o.Unserved = append(o.Unserved, source.crd)
		case watch.Restoring:
			o.RestoringCRDs = append(o.RestoringCRDs, source.crd)
		case watch.Served:
		}
	}
	profiles, err := r.definitions.State(ctx, r.cache, rule.ProfileCRD)
	o.ProfileAPI = profiles != watch.Unserved
	return err
}

func observeBindings(ctx context.Context, reader client.Reader, namespace string) ([]rule.Binding, error) {
	list := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing set bindings: %w", err)
	}
	bindings := make([]rule.Binding, 0, len(list.Items))
	for i := range list.Items {
		binding := &list.Items[i]
		name := types.NamespacedName{Name: binding.Spec.ClusterSet}
		set, err := kube.Get(ctx, reader, name, &clusterv1beta2.ManagedClusterSet{})
		if err != nil {
			return nil, err
		}
		bindings = append(bindings, rule.Binding{Binding: binding, Set: set})
	}
	slices.SortFunc(bindings, func(a, b rule.Binding) int { return cmp.Compare(a.Binding.Name, b.Binding.Name) })
	return bindings, nil
}

// observePlacements reads the publishing Placements of a pair's namespace.
func (r *Rule) observePlacements(ctx context.Context, pair types.NamespacedName) ([]rule.ObservedPlacement, error) {
	list := &clusterv1beta1.PlacementList{}
	publishing := client.MatchingFields{routes.IndexPublishingPlacement: routes.Published}
	if err := r.cache.List(ctx, list, client.InNamespace(pair.Namespace), publishing, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing placements: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	deciding, err := r.deciding(ctx, pair)
	if err != nil {
		return nil, err
	}
	placements := make([]rule.ObservedPlacement, 0, len(list.Items))
	for i := range list.Items {
		placement := &list.Items[i]
		sum, err := r.summary(ctx, placement)
		if err != nil {
			return nil, err
		}
		_, decides := deciding[placement.Name]
		placements = append(placements, rule.ObservedPlacement{Placement: placement, Decides: decides, Summary: sum})
	}
	slices.SortFunc(placements, func(a, b rule.ObservedPlacement) int {
		return cmp.Compare(a.Placement.Name, b.Placement.Name)
	})
	return placements, nil
}

// deciding names the Placements of a pair's namespace, publishing or not, whose decisions
// contain its cluster. It takes one look, however many Placements there are.
func (r *Rule) deciding(ctx context.Context, pair types.NamespacedName) (map[string]struct{}, error) {
	list := &clusterv1beta1.PlacementDecisionList{}
	naming := client.MatchingFields{routes.IndexDecisionByCluster: pair.Name}
	if err := r.cache.List(ctx, list, client.InNamespace(pair.Namespace), naming, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing the decisions for cluster %s: %w", pair.Name, err)
	}
	placements := make(map[string]struct{}, len(list.Items))
	for i := range list.Items {
		placements[rule.PlacementOf(&list.Items[i])] = struct{}{}
	}
	return placements, nil
}

// decisions returns all slices of a Placement's decisions.
func (r *Rule) decisions(
	ctx context.Context, placement *clusterv1beta1.Placement,
) ([]clusterv1beta1.PlacementDecision, error) {
	list := &clusterv1beta1.PlacementDecisionList{}
	here := client.InNamespace(placement.Namespace)
	matching := client.MatchingFields{routes.IndexDecisionByPlacement: placement.Name}
	if err := r.cache.List(ctx, list, here, matching, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing the decisions of Placement %s: %w", placement.Name, err)
	}
	return list.Items, nil
}

// summary returns the summary of a Placement's slices as the cache holds them now. Checking that
// none has changed takes one comparison per slice, and there is one slice for a hundred
// clusters.
func (r *Rule) summary(ctx context.Context, placement *clusterv1beta1.Placement) (rule.Summary, error) {
	all, err := r.decisions(ctx, placement)
	if err != nil {
		return rule.Summary{}, err
	}
	return r.settling.summary(client.ObjectKeyFromObject(placement), all), nil
}

// observePlacement reads a Placement from the cache, and whether it decides for a cluster;
// nil if it does not exist.
func (r *Rule) observePlacement(
	ctx context.Context, key types.NamespacedName, cluster string,
) (*rule.ObservedPlacement, error) {
	placement, err := kube.Get(ctx, r.cache, key, &clusterv1beta1.Placement{})
	if err != nil || placement == nil {
		return nil, err
	}
	deciding, err := r.deciding(ctx, types.NamespacedName{Namespace: key.Namespace, Name: cluster})
	if err != nil {
		return nil, err
	}
	sum, err := r.summary(ctx, placement)
	if err != nil {
		return nil, err
	}
	_, decides := deciding[key.Name]
	return &rule.ObservedPlacement{Placement: placement, Decides: decides, Summary: sum}, nil
}

// observeInstalls reads the Placements with which the install strategy chooses clusters, and whether they
// decide for a cluster.
func (r *Rule) observeInstalls(ctx context.Context, cluster string) (*rule.Installs, error) {
	definition, err := kube.Get(ctx, r.cache, definitionKey, &addonv1beta1.ClusterManagementAddOn{})
	if err != nil {
		return nil, err
	}
	read := rule.NewInstalls(definition)
	for i, key := range read.Keys {
		if read.Placements[i], err = r.observePlacement(ctx, key, cluster); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// lostPlacements are those that were seen publishing and that an observation lacks.
type lostPlacements struct {
	gone, unpublished []string

	// recreated is true if one publishes again since the observation.
	recreated bool
}

// observeAbsence reads what the rule needs to know about what is absent: what has become of Placements that an
// observation lacks and, if the addon is absent, what the install strategy chooses.
func (r *Rule) observeAbsence(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result,
) (lost lostPlacements, installs *rule.Installs, err error) {
	if result.ByAddon {
		if installs, err = r.observeInstalls(ctx, pair.Name); err != nil {
			return lost, nil, err
		}
	}
	if result.Answer != rule.Yes && !rule.IsUnchosen(o, result) {
		return lost, installs, nil // nothing rests on the lost ones
	}
	for _, name := range o.Lost {
		key := types.NamespacedName{Namespace: pair.Namespace, Name: name}
		placement, err := kube.Get(ctx, r.cache, key, &clusterv1beta1.Placement{})
		switch {
		case err != nil:
			return lost, nil, err
		case placement == nil:
			lost.gone = append(lost.gone, name)
		case rule.Publishes(placement):
			lost.recreated = true
		default:
			lost.unpublished = append(lost.unpublished, name)
		}
	}
	return lost, installs, nil
}
