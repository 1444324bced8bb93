package gather

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Snapshot is everything that the rule reads, of one namespace or of all. Of
// ClusterProfiles it has only their owners.
type Snapshot struct {
	Hidden         rule.Hidden
	HiddenProfiles bool
	Settings       settings.Settings

	// Profiles by pair: the namespace, and as name the cluster.
	Profiles map[types.NamespacedName]*inventoryv1alpha1.ClusterProfile

	namespaces map[string]*metav1.PartialObjectMetadata
	clusters   map[string]*clusterv1.ManagedCluster
	addons     map[string]*addonv1beta1.ManagedClusterAddOn
	bindings   map[string][]rule.Binding
	placements map[string][]rule.Placement
}

// SnapshotOptions say how much to read.
type SnapshotOptions struct {
	// Namespace restricts the snapshot to the pairs of one namespace; empty means all.
	Namespace string

	// TrimCluster, unless nil, returns the part of a cluster to keep; by default that is
	// the part that the rule reads.
	TrimCluster func(*clusterv1.ManagedCluster) *clusterv1.ManagedCluster

	// EachProfile, unless nil, is called with every whole profile, after everything else is
	// read. The snapshot keeps only its owner: there may be hundreds of thousands.
	EachProfile func(*Snapshot, *inventoryv1alpha1.ClusterProfile)
}

// Snapshot reads what the rule reads.
func (h *Hub) Snapshot(ctx context.Context, opts SnapshotOptions) (*Snapshot, error) {
	s := &Snapshot{
		Profiles:   map[types.NamespacedName]*inventoryv1alpha1.ClusterProfile{},
		namespaces: map[string]*metav1.PartialObjectMetadata{},
		clusters:   map[string]*clusterv1.ManagedCluster{},
		addons:     map[string]*addonv1beta1.ManagedClusterAddOn{},
		bindings:   map[string][]rule.Binding{},
	}
	for _, step := range []func(context.Context, *Hub, SnapshotOptions) error{
		s.readNamespaces, s.readClusters, s.readAddons, s.readBindings, s.readPlacements, s.readInstallation, s.readProfiles,
	} {
		if err := step(ctx, h, opts); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Snapshot) readNamespaces(ctx context.Context, h *Hub, opts SnapshotOptions) (err error) {
	if opts.Namespace != "" {
		namespace, hidden, err := h.namespace(ctx, opts.Namespace)
		if namespace != nil {
			s.namespaces[opts.Namespace] = namespace
		}
		s.Hidden.Namespaces = hidden
		return err
	}
	all := kube.PartialList(kube.NamespaceKind)
	s.Hidden.Namespaces, err = each(ctx, h, "Namespaces", all, func(n *metav1.PartialObjectMetadata) {
		kept := kube.Partial(kube.NamespaceKind)
		kept.Name, kept.DeletionTimestamp, kept.Annotations = n.Name, n.DeletionTimestamp, n.Annotations
		s.namespaces[n.Name] = kept
	})
	return err
}

func (s *Snapshot) readClusters(ctx context.Context, h *Hub, opts SnapshotOptions) (err error) {
	trim := opts.TrimCluster
	if trim == nil {
		trim = trimCluster
	}
	s.Hidden.Clusters, err = h.eachCluster(ctx, func(c *clusterv1.ManagedCluster) { s.clusters[c.Name] = trim(c) })
	return err
}

func (h *Hub) eachCluster(
	ctx context.Context, take func(*clusterv1.ManagedCluster), opts ...client.ListOption,
) (hidden bool, err error) {
	return each(ctx, h, "ManagedClusters", &clusterv1.ManagedClusterList{}, take, opts...)
}

// trimCluster keeps the part that the rule reads.
func trimCluster(c *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: kube.TrimMeta(c.ObjectMeta),
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: c.Spec.HubAcceptsClient},
	}
}

func (s *Snapshot) readAddons(ctx context.Context, h *Hub, _ SnapshotOptions) (err error) {
	s.Hidden.Addons, err = h.eachAddon(ctx, contract.AddonName, func(a *addonv1beta1.ManagedClusterAddOn) {
		kept := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: kube.TrimMeta(a.ObjectMeta)}
		kept.Status.Conditions = a.Status.Conditions
		s.addons[a.Namespace] = kept
	})
	return err
}

// eachAddon calls take with the addon of that name of every cluster.
func (h *Hub) eachAddon(
	ctx context.Context, name string, take func(*addonv1beta1.ManagedClusterAddOn),
) (hidden bool, err error) {
	return each(ctx, h, "ManagedClusterAddOns", &addonv1beta1.ManagedClusterAddOnList{}, take,
		client.MatchingFields{metav1.ObjectNameField: name})
}

func (s *Snapshot) readBindings(ctx context.Context, h *Hub, opts SnapshotOptions) (err error) {
	sets, hidden, err := h.sets(ctx)
	if s.Hidden.Sets = hidden; err != nil {
		return err
	}
	s.Hidden.Bindings, err = h.eachBinding(ctx, opts.Namespace, func(b *clusterv1beta2.ManagedClusterSetBinding) {
		s.bindings[b.Namespace] = append(s.bindings[b.Namespace], rule.Binding{Binding: b, Set: sets[b.Spec.ClusterSet]})
	})
	return err
}

// sets returns all sets by name.
func (h *Hub) sets(ctx context.Context) (map[string]*clusterv1beta2.ManagedClusterSet, bool, error) {
	sets := map[string]*clusterv1beta2.ManagedClusterSet{}
	hidden, err := each(ctx, h, "ManagedClusterSets", &clusterv1beta2.ManagedClusterSetList{},
		func(set *clusterv1beta2.ManagedClusterSet) { sets[set.Name] = set })
	return sets, hidden, err
}

func (h *Hub) eachBinding(
	ctx context.Context, namespace string, take func(*clusterv1beta2.ManagedClusterSetBinding),
) (hidden bool, err error) {
	return each(ctx, h, "ManagedClusterSetBindings", &clusterv1beta2.ManagedClusterSetBindingList{}, take,
		client.InNamespace(namespace))
}

func (s *Snapshot) readPlacements(ctx context.Context, h *Hub, opts SnapshotOptions) (err error) {
	s.placements, err = h.placements(ctx, opts.Namespace, &s.Hidden)
	return err
}

func (s *Snapshot) readInstallation(ctx context.Context, h *Hub, _ SnapshotOptions) (err error) {
	_, s.Settings, err = h.settings(ctx)
	return err
}

// placements returns the publishing Placements, in one namespace or in all, with their decisions,
// by namespace, and sets what of them is hidden. If there are none, it reads no decisions.
func (h *Hub) placements(
	ctx context.Context, namespace string, hidden *rule.Hidden,
) (found map[string][]rule.Placement, err error) {
	publishing := map[string][]*clusterv1beta1.Placement{}
	add := func(p *clusterv1beta1.Placement) { publishing[p.Namespace] = append(publishing[p.Namespace], p) }
	hidden.Placements, err = each(ctx, h, "Placements", &clusterv1beta1.PlacementList{}, add,
		client.InNamespace(namespace), client.MatchingLabels{contract.LabelPublish: "true"})
	if err != nil || len(publishing) == 0 {
		return nil, err
	}
	decisions := map[string][]clusterv1beta1.PlacementDecision{}
	hidden.Decisions, err = h.eachDecision(ctx, func(d *clusterv1beta1.PlacementDecision) {
		if _, ok := publishing[d.Namespace]; ok {
			decisions[d.Namespace] = append(decisions[d.Namespace], *d)
		}
	}, client.InNamespace(namespace))
	found = map[string][]rule.Placement{}
	for name, list := range publishing {
		found[name] = rule.NewPlacements(list, decisions[name])
	}
	return found, err
}

func (s *Snapshot) readProfiles(ctx context.Context, h *Hub, opts SnapshotOptions) (err error) {
	s.HiddenProfiles, err = h.EachProfile(ctx, opts.Namespace, "", func(p *inventoryv1alpha1.ClusterProfile) {
		if opts.EachProfile != nil {
			opts.EachProfile(s, p)
		}
		s.Profiles[client.ObjectKeyFromObject(p)] = trimProfile(p)
	})
	return err
}

// trimProfile keeps a profile's owner.
func trimProfile(p *inventoryv1alpha1.ClusterProfile) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID,
			DeletionTimestamp: p.DeletionTimestamp, Finalizers: p.Finalizers,
			Labels: map[string]string{contract.LabelManagedBy: p.Labels[contract.LabelManagedBy]},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: p.Spec.ClusterManager},
	}
}

// EachProfile calls take with every ClusterProfile of a namespace, or of all, that a label
// selector selects.
func (h *Hub) EachProfile(
	ctx context.Context, namespace, selector string, take func(*inventoryv1alpha1.ClusterProfile),
) (hidden bool, err error) {
	return each(ctx, h, "ClusterProfiles", &inventoryv1alpha1.ClusterProfileList{}, take,
		profileOptions(namespace, selector)...)
}

func profileOptions(namespace, selector string) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selector}},
	}
}

// Namespaces returns the namespaces in which something is or could be published: a set is
// bound and published there, or there is a ClusterProfile of Open Cluster Management.
func (s *Snapshot) Namespaces() []string {
	names := map[string]struct{}{}
	for namespace, bindings := range s.bindings {
		isOn := func(b rule.Binding) bool { return b.Binding.Labels[contract.LabelPublish] != "false" }
		if slices.ContainsFunc(bindings, isOn) {
			names[namespace] = struct{}{}
		}
	}
	for pair, profile := range s.Profiles {
		if rule.IsOurs(profile) {
			names[pair.Namespace] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Clusters returns every known cluster: ManagedClusters, and those in a ClusterProfile or a
// decision.
func (s *Snapshot) Clusters() []string {
	names := map[string]struct{}{}
	for cluster := range s.clusters {
		names[cluster] = struct{}{}
	}
	for pair := range s.Profiles {
		names[pair.Name] = struct{}{}
	}
	for _, list := range s.placements {
		for _, placement := range list {
			for _, cluster := range placement.Clusters() {
				names[cluster] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Facts returns the facts about a pair.
func (s *Snapshot) Facts(pair types.NamespacedName) rule.Facts {
	return rule.Facts{
		Profile:    s.Profiles[pair],
		Namespace:  s.namespaces[pair.Namespace],
		Cluster:    s.clusters[pair.Name],
		Addon:      s.addons[pair.Name],
		Bindings:   s.bindings[pair.Namespace],
		Placements: s.placements[pair.Namespace],
		Hidden:     s.Hidden,

		ExclusiveSetsOnly: s.Settings.ExclusiveSetsOnly,
	}
}

// HasNamespace reports whether a namespace exists; it returns true if that is hidden.
func (s *Snapshot) HasNamespace(name string) bool {
	_, ok := s.namespaces[name]
	return ok || s.Hidden.Namespaces
}

// EachWholeProfile is EachProfile for untrimmed objects.
func (h *Hub) EachWholeProfile(
	ctx context.Context, namespace, selector string, take func(*unstructured.Unstructured),
) (hidden bool, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(inventoryv1alpha1.GroupVersion.WithKind("ClusterProfileList"))
	return each(ctx, h, "ClusterProfiles", list, take, profileOptions(namespace, selector)...)
}
