package routes

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Remembered are pairs about which a controller holds state, so that it must reconcile them
// although they may be neither selected nor have a profile.
type Remembered interface {
	All() []types.NamespacedName
	NamespacesOf(cluster string) []string
	ClustersIn(namespace string) []string
}

// Routes map events to the pairs they concern: those that are selected now, through indexes,
// those that have a profile, and those that are remembered. The last two find a pair that is
// no longer selected, even if no event showed that.
//
// On an update each route is taken twice, with the old and with the new object.
type Routes struct {
	Reader     client.Reader // the cache
	Settling   Settling
	Remembered Remembered

	// IsInstall reports whether the install strategy refers to a Placement.
	IsInstall func(ctx context.Context, placement types.NamespacedName) (bool, error)

	// Touched is called with each pair that an event concerns, and InstallChanged with the
	// namespace of each Placement of the install strategy whose choice may have changed.
	Touched        func(pair types.NamespacedName)
	InstallChanged func(namespace string)
}

// Settling receives what events show of Placements and pairs, which the caches may show only for
// a moment.
type Settling interface {
	// Forget says that a Placement does not exist, Unpublished that it no longer publishes, and
	// Widen that a namespace is gone.
	Forget(placement types.NamespacedName)
	Unpublished(placement types.NamespacedName)
	Widen(namespace string)

	// Chosen says that clusters were in the decisions of a Placement, and Present that a pair's
	// was in those of one.
	Chosen(placement types.NamespacedName, clusters []string)
	Present(pair types.NamespacedName)

	// TakeAwaiting returns the pairs that wait for the decisions of a Placement, and forgets that
	// they do.
	TakeAwaiting(placement types.NamespacedName) []types.NamespacedName
}

// Watch adds to a controller of pairs the watches of everything the rule reads, except
// ClusterProfiles, which the controller itself must watch, and CRDs, which
// Rule.SubscribeDefinitions covers. contentChanged reports which changes of a ManagedCluster
// matter in addition to those that the rule reads.
func (r Routes) Watch(
	b *builder.Builder, contentChanged func(before, after *clusterv1.ManagedCluster) bool,
) *builder.Builder {
	clusterMatters := kube.OnChange(func(before, after *clusterv1.ManagedCluster) bool {
		return membershipChanged(before, after) || contentChanged(before, after)
	})
	namespaceMatters := kube.OnChange(requirementChanged)
	return b.
		Watches(&clusterv1.ManagedCluster{}, r.Route(r.pairsForCluster), when(clusterMatters)).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, r.Route(r.pairsForAddon), when(kube.OnChange(kube.Never))).
		Watches(&clusterv1beta2.ManagedClusterSet{}, r.Route(r.pairsForSet), when(kube.OnChange(setChanged))).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, r.Route(r.PairsForBinding), when(kube.OnChange(bindingChanged))).
		Watches(&clusterv1beta1.Placement{}, r.Route(r.PairsForPlacement), when(ofPublishing(placementScopeChanged))).
		Watches(&clusterv1beta1.Placement{}, r.Route(r.PairsAwaiting), when(kube.OnChange(placementStatusChanged))).
		Watches(&clusterv1beta1.PlacementDecision{}, r.Route(r.PairsForDecision), when(kube.OnChange(decisionChanged))).
		WatchesMetadata(kube.Partial(kube.NamespaceKind), r.Route(r.pairsForNamespace), when(namespaceMatters))
}

// Route makes an event handler of one of the following, which also notifies the rule of each
// pair.
func (r Routes) Route(find handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		found := find(ctx, obj)
		for _, request := range found {
			r.Touched(request.NamespacedName)
		}
		return found
	})
}

func when(condition predicate.Predicate) builder.Predicates { return builder.WithPredicates(condition) }

type pairs map[types.NamespacedName]struct{}

func (p pairs) add(namespace, cluster string) {
	p[types.NamespacedName{Namespace: namespace, Name: cluster}] = struct{}{}
}

func (p pairs) addAll(more []types.NamespacedName) {
	for _, pair := range more {
		p[pair] = struct{}{}
	}
}

// requests ends a route. Caches respond from memory, so an error can only mean that they
// are being shut down.
func (p pairs) requests(ctx context.Context, err error) []reconcile.Request {
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the pairs an event concerns")
	}
	list := make([]reconcile.Request, 0, len(p))
	for pair := range p {
		list = append(list, reconcile.Request{NamespacedName: pair})
	}
	return list
}

// pairsForCluster maps a ManagedCluster to its pairs.
func (r Routes) pairsForCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	err := r.addCluster(ctx, found, obj.GetName(), obj.GetLabels())
	return found.requests(ctx, err)
}

// pairsForAddon maps a ManagedClusterAddOn to the cluster's pairs.
func (r Routes) pairsForAddon(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	name := types.NamespacedName{Name: obj.GetNamespace()}
	cluster, err := kube.Get(ctx, r.Reader, name, &clusterv1.ManagedCluster{})
	if err == nil {
		var labels map[string]string
		if cluster != nil {
			labels = cluster.Labels
		}
		err = r.addCluster(ctx, found, obj.GetNamespace(), labels)
	}
	return found.requests(ctx, err)
}

// pairsForSet maps a ManagedClusterSet to the pairs of its members with the namespaces that
// bind it.
func (r Routes) pairsForSet(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	set, ok := obj.(*clusterv1beta2.ManagedClusterSet)
	if !ok {
		return nil
	}
	members, err := r.members(ctx, set)
	if err != nil {
		return found.requests(ctx, err)
	}
	namespaces, err := r.namespacesBinding(ctx, set.Name, false)
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

// PairsForBinding maps a ManagedClusterSetBinding to the pairs of its namespace with the
// bound set's members.
func (r Routes) PairsForBinding(ctx context.Context, obj client.Object) []reconcile.Request {
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

// pairsForNamespace maps a Namespace to all of its pairs.
func (r Routes) pairsForNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	key := client.ObjectKeyFromObject(obj)
	namespace, err := kube.Get(ctx, r.Reader, key, kube.Partial(kube.NamespaceKind))
	if err != nil {
		return found.requests(ctx, err)
	}
	if namespace == nil {
		r.Settling.Widen(key.Name)
	}
	err = r.addNamespace(ctx, found, key.Name)
	return found.requests(ctx, err)
}

// PairsForPlacement maps a Placement that began or ceased to publish to all pairs of its
// namespace.
func (r Routes) PairsForPlacement(ctx context.Context, obj client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(obj)
	found := pairs{}
	placement, err := kube.Get(ctx, r.Reader, key, &clusterv1beta1.Placement{})
	if err != nil {
		return found.requests(ctx, err)
	}
	switch {
	case placement == nil:
		r.Settling.Forget(key)
	case !rule.Publishes(placement):
		r.Settling.Unpublished(key)
	}
	err = r.addNamespace(ctx, found, key.Namespace)
	return found.requests(ctx, err)
}

// PairsAwaiting maps a Placement to the pairs that wait for its decisions.
func (r Routes) PairsAwaiting(ctx context.Context, obj client.Object) []reconcile.Request {
	found := pairs{}
	key := client.ObjectKeyFromObject(obj)
	err := r.announceInstall(ctx, key)
	found.addAll(r.Settling.TakeAwaiting(key))
	return found.requests(ctx, err)
}

// announceInstall notifies subscribers of a Placement, if it is one of the install strategy's.
func (r Routes) announceInstall(ctx context.Context, placement types.NamespacedName) error {
	installs, err := r.IsInstall(ctx, placement)
	if err == nil && installs {
		r.InstallChanged(placement.Namespace)
	}
	return err
}

// PairsForDecision maps a slice of a publishing Placement's decisions to the pairs of its
// clusters, and to those that wait for the Placement's decisions.
func (r Routes) PairsForDecision(ctx context.Context, obj client.Object) []reconcile.Request {
	decision, ok := obj.(*clusterv1beta1.PlacementDecision)
	if !ok || rule.PlacementOf(decision) == "" {
		return nil
	}
	key := rule.PlacementKey(decision)
	found := pairs{}
	if err := r.announceInstall(ctx, key); err != nil {
		return found.requests(ctx, err)
	}
	placement, err := kube.Get(ctx, r.Reader, key, &clusterv1beta1.Placement{})
	if err != nil || placement == nil || !rule.Publishes(placement) {
		return found.requests(ctx, err)
	}
	decided := pairs{}
	for _, cluster := range rule.DecidedClusters(decision) {
		decided.add(decision.Namespace, cluster)
	}
	// The clusters in this slice, now or until now, have not been absent before. The
	// reconciliation of the pair may be too late to see a short return.
	for pair := range decided {
		r.Settling.Present(pair)
		found[pair] = struct{}{}
	}
	found.addAll(r.Settling.TakeAwaiting(key))
	return found.requests(ctx, nil)
}

// PairsWithProfile returns the pairs of a cluster that have a profile, or those of all
// clusters if the name is empty.
func (r Routes) PairsWithProfile(ctx context.Context, cluster string) ([]types.NamespacedName, error) {
	var which []client.ListOption
	if cluster != "" {
		which = append(which, client.MatchingFields{IndexProfileByName: cluster})
	}
	found := pairs{}
	err := r.addProfiles(ctx, found, which...)
	return slices.Collect(maps.Keys(found)), err
}

// AllPairs maps events that concern every pair to every pair.
func (r Routes) AllPairs(ctx context.Context, _ client.Object) []reconcile.Request {
	found := pairs{}
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := r.Reader.List(ctx, bindings, kube.Uncopied); err != nil {
		return found.requests(ctx, err)
	}
	for i := range bindings.Items {
		if err := r.addMembers(ctx, found, &bindings.Items[i]); err != nil {
			return found.requests(ctx, err)
		}
	}
	err := r.addProfiles(ctx, found)
	for _, pair := range r.Remembered.All() {
		found[pair] = struct{}{}
	}
	return found.requests(ctx, err)
}

// ExpectedNamespaces returns, sorted, the namespaces in which a cluster has a profile or a
// consumer may expect one.
func (r Routes) ExpectedNamespaces(ctx context.Context, cluster string) ([]string, error) {
	found := pairs{}
	object, err := kube.Get(ctx, r.Reader, types.NamespacedName{Name: cluster}, &clusterv1.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	if object != nil {
		if err := r.addBound(ctx, found, cluster, object.Labels, true); err != nil {
			return nil, err
		}
	}
	if err := r.addProfiles(ctx, found, client.MatchingFields{IndexProfileByName: cluster}); err != nil {
		return nil, err
	}
	var namespaces []string
	for pair := range found {
		namespaces = append(namespaces, pair.Namespace)
	}
	return kube.SortedNames(namespaces), nil
}

// addCluster adds every pair of a cluster that has the given labels.
func (r Routes) addCluster(ctx context.Context, found pairs, cluster string, labels map[string]string) error {
	if err := r.addBound(ctx, found, cluster, labels, false); err != nil {
		return err
	}
	for _, namespace := range r.Remembered.NamespacesOf(cluster) {
		found.add(namespace, cluster)
	}
	return r.addProfiles(ctx, found, client.MatchingFields{IndexProfileByName: cluster})
}

// addBound adds the pairs of a cluster with the namespaces that bind a set that selects it,
// or may; if publishing, only by bindings that are to publish.
func (r Routes) addBound(
	ctx context.Context, found pairs, cluster string, labels map[string]string, publishing bool,
) error {
	sets, err := r.setsOf(ctx, labels)
	if err != nil {
		return err
	}
	for _, set := range sets {
		namespaces, err := r.namespacesBinding(ctx, set, publishing)
		if err != nil {
			return err
		}
		for _, namespace := range namespaces {
			found.add(namespace, cluster)
		}
	}
	return nil
}

// addNamespace adds every pair of a namespace.
func (r Routes) addNamespace(ctx context.Context, found pairs, namespace string) error {
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := r.Reader.List(ctx, bindings, client.InNamespace(namespace), kube.Uncopied); err != nil {
		return err
	}
	for i := range bindings.Items {
		if err := r.addMembers(ctx, found, &bindings.Items[i]); err != nil {
			return err
		}
	}
	return r.addPresent(ctx, found, namespace)
}

// addPresent adds the pairs of a namespace that have a profile or are remembered.
func (r Routes) addPresent(ctx context.Context, found pairs, namespace string) error {
	err := r.addProfiles(ctx, found, client.InNamespace(namespace))
	for _, cluster := range r.Remembered.ClustersIn(namespace) {
		found.add(namespace, cluster)
	}
	return err
}

// addProfiles adds the pairs of some profiles.
func (r Routes) addProfiles(ctx context.Context, found pairs, which ...client.ListOption) error {
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	err := r.Reader.List(ctx, profiles, append(which, kube.Uncopied)...)
	if kube.IsUncached(err) {
		return nil
	}
	for i := range profiles.Items {
		found.add(profiles.Items[i].Namespace, profiles.Items[i].Name)
	}
	return err
}

// addMembers adds the members of the set that a binding binds.
func (r Routes) addMembers(ctx context.Context, found pairs, binding *clusterv1beta2.ManagedClusterSetBinding) error {
	name := types.NamespacedName{Name: binding.Spec.ClusterSet}
	set, err := kube.Get(ctx, r.Reader, name, &clusterv1beta2.ManagedClusterSet{})
	if err != nil || set == nil {
		return err
	}
	members, err := r.members(ctx, set)
	for _, cluster := range members {
		found.add(binding.Namespace, cluster)
	}
	return err
}

// members returns the clusters that a set selects, or all if that is unknown.
func (r Routes) members(ctx context.Context, set *clusterv1beta2.ManagedClusterSet) ([]string, error) {
	by := client.ListOption(client.MatchingFields{IndexClusterBySet: set.Name})
	if !rule.IsExclusive(set) {
		selector, err := rule.SetSelector(set)
		if err != nil {
			selector = labels.Everything()
		}
		by = client.MatchingLabelsSelector{Selector: selector}
	}
	clusters := &clusterv1.ManagedClusterList{}
	err := r.Reader.List(ctx, clusters, by, kube.Uncopied)
	names := make([]string, 0, len(clusters.Items))
	for i := range clusters.Items {
		names = append(names, clusters.Items[i].Name)
	}
	return names, err
}

// setsOf names the sets that select a cluster with the given labels, or may: the one its
// label names, unless that one selects by other labels, and those that do select by other
// labels.
func (r Routes) setsOf(ctx context.Context, clusterLabels map[string]string) ([]string, error) {
	var names []string
	if name := clusterLabels[clusterv1beta2.ClusterSetLabel]; name != "" {
		set, err := kube.Get(ctx, r.Reader, types.NamespacedName{Name: name}, &clusterv1beta2.ManagedClusterSet{})
		if err != nil {
			return nil, err
		}
		if set == nil || rule.IsExclusive(set) {
			names = []string{name}
		}
	}
	sets := &clusterv1beta2.ManagedClusterSetList{}
	err := r.Reader.List(ctx, sets, client.MatchingFields{IndexSetByLabelSelector: selectsByLabels}, kube.Uncopied)
	for i := range sets.Items {
		selector, invalid := rule.SetSelector(&sets.Items[i])
		if invalid != nil || selector.Matches(labels.Set(clusterLabels)) {
			names = append(names, sets.Items[i].Name)
		}
	}
	return kube.SortedNames(names), err
}

func (r Routes) namespacesBinding(ctx context.Context, set string, publishing bool) ([]string, error) {
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	err := r.Reader.List(ctx, bindings, client.MatchingFields{IndexBindingBySet: set}, kube.Uncopied)
	var namespaces []string
	for i := range bindings.Items {
		if !publishing || bindings.Items[i].Labels[contract.LabelPublish] != "false" {
			namespaces = append(namespaces, bindings.Items[i].Namespace)
		}
	}
	return kube.SortedNames(namespaces), err
}
