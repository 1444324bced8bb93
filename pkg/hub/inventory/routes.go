package inventory

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// routes finds the pairs that an event touches: those that are selected now,
// through indexes, those that have a profile, and those that had an outcome. The
// last two make sure that a pair which is selected no longer is looked at too,
// also when the manager was not there to see it go.
//
// On an update each route is taken twice, with the old and with the new object.
type routes struct {
	reader   client.Reader
	outcomes *outcomes
	settling *settling
}

type pairs map[types.NamespacedName]struct{}

func (p pairs) add(namespace, cluster string) {
	p[types.NamespacedName{Namespace: namespace, Name: cluster}] = struct{}{}
}

// requests ends a route. An error can only mean that the caches are being shut
// down: they answer from memory.
func (p pairs) requests(ctx context.Context, err error) []reconcile.Request {
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the pairs an event touches")
	}
	list := make([]reconcile.Request, 0, len(p))
	for pair := range p {
		list = append(list, reconcile.Request{NamespacedName: pair})
	}
	return list
}

// profilesForCluster leads from a ManagedCluster to its profiles.
func (r routes) profilesForCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	err := r.addCluster(ctx, found, obj.GetName(), obj.GetLabels())
	return found.requests(ctx, err)
}

// profilesForAddon leads from a ManagedClusterAddOn to the cluster's profiles.
func (r routes) profilesForAddon(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	cluster, err := get(ctx, r.reader, types.NamespacedName{Name: obj.GetNamespace()}, &clusterv1.ManagedCluster{})
	if err == nil {
		var labels map[string]string
		if cluster != nil {
			labels = cluster.Labels
		}
		err = r.addCluster(ctx, found, obj.GetNamespace(), labels)
	}
	return found.requests(ctx, err)
}

// profilesForSet leads from a ManagedClusterSet to the profiles of its members
// in the namespaces that bind it.
func (r routes) profilesForSet(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	set, ok := obj.(*clusterv1beta2.ManagedClusterSet)
	if !ok {
		return nil
	}
	members, err := r.members(ctx, set)
	if err != nil {
		return found.requests(ctx, err)
	}
	namespaces, err := r.namespacesBinding(ctx, set.Name, anyBinding)
	for _, namespace := range namespaces {
		for _, cluster := range members {
			found.add(namespace, cluster)
		}
		if err == nil {
			err = r.addPresent(ctx, found, namespace)
		}
	}
	return found.requests(ctx, err)
}

// profilesForBinding leads from a ManagedClusterSetBinding to the profiles of
// the bound set's members in its namespace.
func (r routes) profilesForBinding(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	binding, ok := obj.(*clusterv1beta2.ManagedClusterSetBinding)
	if !ok {
		return nil
	}
	err := r.addMembers(ctx, found, binding)
	if err == nil {
		err = r.addPresent(ctx, found, binding.Namespace)
	}
	return found.requests(ctx, err)
}

// profilesForNamespace leads from a Namespace to all profiles that are or could
// be in it.
func (r routes) profilesForNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	err := r.addNamespace(ctx, found, obj.GetName())
	return found.requests(ctx, err)
}

// profilesForPlacement leads from a Placement that began or ceased to publish to
// all profiles of its namespace.
func (r routes) profilesForPlacement(ctx context.Context, obj client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(obj)
	found := pairs{}
	placement, err := get(ctx, r.reader, key, &clusterv1beta1.Placement{})
	if err != nil {
		return found.requests(ctx, err)
	}
	if placement == nil || !publishes(placement) {
		r.settling.forget(key)
	}
	err = r.addNamespace(ctx, found, key.Namespace)
	return found.requests(ctx, err)
}

// profilesAwaiting leads from a Placement to all profiles of its namespace, if
// some of them wait for it to be decided.
func (r routes) profilesAwaiting(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	var err error
	if r.settling.takeAwaited(client.ObjectKeyFromObject(obj)) {
		err = r.addNamespace(ctx, found, obj.GetNamespace())
	}
	return found.requests(ctx, err)
}

// profilesForDecision leads from a slice of a publishing Placement's decisions
// to the profiles of the clusters it names, and to those that wait for the
// Placement to be decided.
func (r routes) profilesForDecision(ctx context.Context, obj client.Object) []reconcile.Request {
	decision, ok := obj.(*clusterv1beta1.PlacementDecision)
	if !ok || placementOf(decision) == "" {
		return nil
	}
	key := types.NamespacedName{Namespace: decision.Namespace, Name: placementOf(decision)}
	found := pairs{}
	placement, err := get(ctx, r.reader, key, &clusterv1beta1.Placement{})
	if err != nil || placement == nil || !publishes(placement) {
		return found.requests(ctx, err)
	}
	for _, cluster := range decidedClusters(decision) {
		found.add(decision.Namespace, cluster)
	}
	if r.settling.takeAwaited(key) {
		err = r.addNamespace(ctx, found, decision.Namespace)
	}
	return found.requests(ctx, err)
}

// profilesOf leads from a cluster that is reached in another way to its profiles;
// from no name to all. One that is not there yet will be made as things are then.
func (r routes) profilesOf(ctx context.Context, cluster string) []reconcile.Request {
	found := pairs{}
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	options := []client.ListOption{uncopied}
	if cluster != "" {
		options = append(options, client.MatchingFields{IndexProfileByName: cluster})
	}
	err := r.reader.List(ctx, profiles, options...)
	for i := range profiles.Items {
		found.add(profiles.Items[i].Namespace, profiles.Items[i].Name)
	}
	return found.requests(ctx, err)
}

// allProfiles leads from what concerns every pair to every pair.
func (r routes) allProfiles(ctx context.Context, _ client.Object) []reconcile.Request {
	found := pairs{}
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := r.reader.List(ctx, bindings, uncopied); err != nil {
		return found.requests(ctx, err)
	}
	for i := range bindings.Items {
		if err := r.addMembers(ctx, found, &bindings.Items[i]); err != nil {
			return found.requests(ctx, err)
		}
	}
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	err := r.reader.List(ctx, profiles, uncopied)
	for i := range profiles.Items {
		found.add(profiles.Items[i].Namespace, profiles.Items[i].Name)
	}
	for _, pair := range r.outcomes.all() {
		found[pair] = struct{}{}
	}
	return found.requests(ctx, err)
}

// expectedNamespaces are those in which a cluster has a profile, or somebody may
// ask for one.
func (r routes) expectedNamespaces(ctx context.Context, cluster string) ([]string, error) {
	found := pairs{}
	object, err := get(ctx, r.reader, types.NamespacedName{Name: cluster}, &clusterv1.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	if object != nil {
		if err := r.addBound(ctx, found, cluster, object.Labels, publishingBinding); err != nil {
			return nil, err
		}
	}
	if err := r.addProfilesOf(ctx, found, cluster); err != nil {
		return nil, err
	}
	var namespaces []string
	for pair := range found {
		namespaces = append(namespaces, pair.Namespace)
	}
	return sorted(namespaces), nil
}

// addCluster adds every pair of a cluster that has the given labels.
func (r routes) addCluster(ctx context.Context, found pairs, cluster string, labels map[string]string) error {
	if err := r.addBound(ctx, found, cluster, labels, anyBinding); err != nil {
		return err
	}
	for _, namespace := range r.outcomes.namespacesOf(cluster) {
		found.add(namespace, cluster)
	}
	return r.addProfilesOf(ctx, found, cluster)
}

// addBound adds the pairs of a cluster with the namespaces that bind a set that
// selects it, or may.
func (r routes) addBound(ctx context.Context, found pairs, cluster string, labels map[string]string, which func(*clusterv1beta2.ManagedClusterSetBinding) bool) error {
	sets, err := r.setsOf(ctx, labels)
	if err != nil {
		return err
	}
	for _, set := range sets {
		namespaces, err := r.namespacesBinding(ctx, set, which)
		if err != nil {
			return err
		}
		for _, namespace := range namespaces {
			found.add(namespace, cluster)
		}
	}
	return nil
}

func (r routes) addProfilesOf(ctx context.Context, found pairs, cluster string) error {
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	err := r.reader.List(ctx, profiles, client.MatchingFields{IndexProfileByName: cluster}, uncopied)
	for i := range profiles.Items {
		found.add(profiles.Items[i].Namespace, cluster)
	}
	return err
}

// addNamespace adds every pair of a namespace.
func (r routes) addNamespace(ctx context.Context, found pairs, namespace string) error {
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := r.reader.List(ctx, bindings, client.InNamespace(namespace), uncopied); err != nil {
		return err
	}
	for i := range bindings.Items {
		if err := r.addMembers(ctx, found, &bindings.Items[i]); err != nil {
			return err
		}
	}
	return r.addPresent(ctx, found, namespace)
}

// addPresent adds the pairs of a namespace that have a profile or an outcome.
func (r routes) addPresent(ctx context.Context, found pairs, namespace string) error {
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	err := r.reader.List(ctx, profiles, client.InNamespace(namespace), uncopied)
	for i := range profiles.Items {
		found.add(namespace, profiles.Items[i].Name)
	}
	for _, cluster := range r.outcomes.clustersIn(namespace) {
		found.add(namespace, cluster)
	}
	return err
}

// addMembers adds the members of the set that a binding binds.
func (r routes) addMembers(ctx context.Context, found pairs, binding *clusterv1beta2.ManagedClusterSetBinding) error {
	set, err := get(ctx, r.reader, types.NamespacedName{Name: binding.Spec.ClusterSet}, &clusterv1beta2.ManagedClusterSet{})
	if err != nil || set == nil {
		return err
	}
	members, err := r.members(ctx, set)
	for _, cluster := range members {
		found.add(binding.Namespace, cluster)
	}
	return err
}

// members returns the clusters a set selects, or all when that cannot be told.
func (r routes) members(ctx context.Context, set *clusterv1beta2.ManagedClusterSet) ([]string, error) {
	by := client.ListOption(client.MatchingFields{IndexClusterBySet: set.Name})
	if !isExclusive(set) {
		selector, err := setSelector(set)
		if err != nil {
			selector = labels.Everything()
		}
		by = client.MatchingLabelsSelector{Selector: selector}
	}
	clusters := &clusterv1.ManagedClusterList{}
	err := r.reader.List(ctx, clusters, by, uncopied)
	names := make([]string, 0, len(clusters.Items))
	for i := range clusters.Items {
		names = append(names, clusters.Items[i].Name)
	}
	return names, err
}

// setsOf names the sets that select a cluster of the given labels, or may: the
// one its label names, unless that one selects by other labels, and those that
// do.
func (r routes) setsOf(ctx context.Context, clusterLabels map[string]string) ([]string, error) {
	names := nonEmpty(clusterLabels[clusterv1beta2.ClusterSetLabel])
	for _, name := range names {
		set, err := get(ctx, r.reader, types.NamespacedName{Name: name}, &clusterv1beta2.ManagedClusterSet{})
		if err != nil {
			return nil, err
		}
		if set != nil && !isExclusive(set) {
			names = nil
		}
	}
	sets := &clusterv1beta2.ManagedClusterSetList{}
	err := r.reader.List(ctx, sets, client.MatchingFields{IndexSetByLabelSelector: selectsByLabels}, uncopied)
	for i := range sets.Items {
		selector, invalid := setSelector(&sets.Items[i])
		if invalid != nil || selector.Matches(labels.Set(clusterLabels)) {
			names = append(names, sets.Items[i].Name)
		}
	}
	return sorted(names), err
}

func (r routes) namespacesBinding(ctx context.Context, set string, which func(*clusterv1beta2.ManagedClusterSetBinding) bool) ([]string, error) {
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	err := r.reader.List(ctx, bindings, client.MatchingFields{IndexBindingBySet: set}, uncopied)
	var namespaces []string
	for i := range bindings.Items {
		if which(&bindings.Items[i]) {
			namespaces = append(namespaces, bindings.Items[i].Namespace)
		}
	}
	return sorted(namespaces), err
}

func anyBinding(*clusterv1beta2.ManagedClusterSetBinding) bool { return true }

func publishingBinding(binding *clusterv1beta2.ManagedClusterSetBinding) bool {
	return binding.Labels[contract.LabelPublish] != "false"
}
