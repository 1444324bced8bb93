package gather

import (
	"context"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// proxyAddon is cluster-proxy's addon on a cluster.
const proxyAddon = "cluster-proxy"

// Pair reads the facts about one pair: single objects, and lists in its namespaces only.
func (h *Hub) Pair(ctx context.Context, namespace, cluster string) (decide.PairFacts, error) {
	facts := decide.PairFacts{Namespace: namespace, Cluster: cluster}
	hidden := &facts.Facts.Hidden
	for _, step := range []func() error{
		func() (err error) {
			facts.Facts.Cluster, hidden.Clusters, err = h.cluster(ctx, cluster)
			return err
		},
		func() (err error) {
			facts.Installation, facts.Settings, err = h.settings(ctx)
			facts.Facts.ExclusiveSetsOnly = facts.Settings.ExclusiveSetsOnly
			return err
		},
		func() (err error) {
			facts.Facts.Addon, hidden.Addons, err = h.addon(ctx, cluster, contract.AddonName)
			return err
		},
		func() (err error) {
			facts.Facts.Namespace, hidden.Namespaces, err = h.namespace(ctx, namespace)
			return err
		},
		func() error { return h.readBindings(ctx, namespace, &facts.Facts) },
		func() error {
			found, err := h.placements(ctx, namespace, hidden)
			facts.Facts.Placements = found[namespace]
			return err
		},
		func() error { return h.readProfile(ctx, &facts) },
		func() (err error) {
			facts.Proxy.Object, facts.Proxy.Hidden, err = h.addon(ctx, cluster, proxyAddon)
			return err
		},
		func() (err error) {
			facts.HiddenAccounts, err = h.EachAccount(ctx, cluster, func(a *authv1beta1.ManagedServiceAccount) {
				facts.Accounts = append(facts.Accounts, a)
			})
			return err
		},
		func() error { return h.readEvents(ctx, &facts) },
	} {
		if err := step(); err != nil {
			return facts, err
		}
	}
	return facts, nil
}

func (h *Hub) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, bool, error) {
	return read(ctx, h, "ManagedClusters", "", name, &clusterv1.ManagedCluster{})
}

func (h *Hub) addon(ctx context.Context, cluster, name string) (*addonv1beta1.ManagedClusterAddOn, bool, error) {
	return read(ctx, h, "ManagedClusterAddOns", cluster, name, &addonv1beta1.ManagedClusterAddOn{})
}

// installation reads the ClusterManagementAddOn, which is absent if the addon is not installed on the hub.
func (h *Hub) installation(
	ctx context.Context,
) (installation decide.Object[addonv1beta1.ClusterManagementAddOn], err error) {
	err = load(ctx, h, "ClusterManagementAddOns", "", contract.AddonName, &installation)
	return installation, err
}

func (h *Hub) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, bool, error) {
	return read(ctx, h, "Namespaces", "", name, kube.Partial(kube.NamespaceKind))
}

// readBindings reads a namespace's bindings and the set of each.
func (h *Hub) readBindings(ctx context.Context, namespace string, facts *rule.Facts) error {
	hidden, err := h.eachBinding(ctx, namespace, func(b *clusterv1beta2.ManagedClusterSetBinding) {
		facts.Bindings = append(facts.Bindings, rule.Binding{Binding: b})
	})
	facts.Hidden.Bindings = hidden
	for i := 0; err == nil && i < len(facts.Bindings); i++ {
		b := &facts.Bindings[i]
		b.Set, hidden, err = read(
			ctx, h, "ManagedClusterSets", "", b.Binding.Spec.ClusterSet, &clusterv1beta2.ManagedClusterSet{})
		facts.Hidden.Sets = facts.Hidden.Sets || hidden
	}
	return err
}

func (h *Hub) readProfile(ctx context.Context, facts *decide.PairFacts) (err error) {
	facts.Facts.Profile, facts.HiddenProfile, err = h.Profile(ctx, facts.Namespace, facts.Cluster)
	facts.NoProfileAPI = err != nil && served(err) == nil
	return served(err)
}

// EachAccount calls take with the accounts that may be copied, of one cluster or, if that is empty,
// of all. A hub without managed-serviceaccount has none.
func (h *Hub) EachAccount(
	ctx context.Context, cluster string, take func(*authv1beta1.ManagedServiceAccount),
) (hidden bool, err error) {
	hidden, err = each(ctx, h, "ManagedServiceAccounts", &authv1beta1.ManagedServiceAccountList{}, take,
		client.InNamespace(cluster), client.MatchingLabels{contract.LabelSyncToProfile: "true"})
	return hidden, served(err)
}

// readEvents reads the events in the namespace by which the manager tells its consumers what
// they lack of the cluster.
func (h *Hub) readEvents(ctx context.Context, facts *decide.PairFacts) error {
	for _, controller := range []string{inventory.ControllerName, credentials.ControllerName} {
		hidden, err := each(ctx, h, "Events", &eventsv1.EventList{}, facts.AddEvent,
			client.InNamespace(facts.Namespace), client.MatchingFields{"reportingController": controller})
		facts.HiddenEvents = hidden
		if err != nil || hidden {
			return err
		}
	}
	return nil
}

// Members reads who may have the member ids that a pair's cluster may have, and which profiles
// have them: those of all namespaces only if that decides, and may be read.
func (h *Hub) Members(ctx context.Context, facts *decide.PairFacts) error {
	m := &facts.Members
	ids := facts.MemberIDs()
	if len(ids) == 0 || facts.NoProfileAPI {
		return nil
	}
	selector := contract.LabelInventoryMemberID + " in (" + strings.Join(ids, ",") + ")"
	if facts.Facts.Cluster != nil {
		m.AddCluster(facts.Facts.Cluster)
	}
	var err error
	if m.HiddenClusters, err = h.eachCluster(ctx, m.AddCluster,
		&client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selector}}); err != nil {
		return err
	}
	for _, id := range ids {
		if id == facts.Cluster {
			continue
		}
		named, hidden, err := h.cluster(ctx, id)
		if err != nil {
			return err
		}
		if m.HiddenClusters = m.HiddenClusters || hidden; named != nil {
			m.AddCluster(named)
		}
	}
	namespace := facts.Namespace
	if facts.IsTied() {
		namespace = ""
	}
	m.Hidden, err = h.EachProfile(ctx, namespace, selector, m.Add)
	if m.Hidden && namespace == "" && err == nil {
		m.Hidden, err = h.EachProfile(ctx, facts.Namespace, selector, m.Add)
	}
	return served(err)
}

// Property reads what concerns one property of a cluster: the cluster, its addon, and its
// profiles in one namespace or, if that is empty, in all. If those of all may not be
// listed, it reads the one in the reader's own.
func (h *Hub) Property(ctx context.Context, name, cluster, namespace, own string) (decide.PropertyFacts, error) {
	facts := decide.PropertyFacts{Property: name, Cluster: cluster}
	var err error
	facts.ManagedCluster, facts.HiddenCluster, err = h.cluster(ctx, cluster)
	if err != nil {
		return facts, err
	}
	if facts.Addon, facts.HiddenAddon, err = h.addon(ctx, cluster, contract.AddonName); err != nil {
		return facts, err
	}
	if facts.Settings, err = h.Settings(ctx); err != nil {
		return facts, err
	}
	facts.HiddenProfiles, err = h.profilesOf(ctx, &facts, namespace)
	if facts.HiddenProfiles && namespace == "" && err == nil {
		facts.OnlyIn = own
		facts.HiddenProfiles, err = h.profilesOf(ctx, &facts, own)
	}
	return facts, err
}

// profilesOf reads a cluster's profiles: in one namespace by its name, which takes fewer
// rights than a list, and in all by the label that the manager sets.
func (h *Hub) profilesOf(ctx context.Context, facts *decide.PropertyFacts, namespace string) (bool, error) {
	if namespace == "" {
		selector := contract.LabelClusterName + "=" + facts.Cluster
		return h.EachProfile(ctx, "", selector, func(p *inventoryv1alpha1.ClusterProfile) {
			facts.Profiles = append(facts.Profiles, p)
		})
	}
	profile, hidden, err := h.Profile(ctx, namespace, facts.Cluster)
	if profile != nil {
		facts.Profiles = append(facts.Profiles, profile)
	}
	return hidden, err
}

// Profile reads one ClusterProfile, nil if there is none.
func (h *Hub) Profile(ctx context.Context, namespace, name string) (*inventoryv1alpha1.ClusterProfile, bool, error) {
	return read(ctx, h, "ClusterProfiles", namespace, name, &inventoryv1alpha1.ClusterProfile{})
}

// Decided returns the clusters that a Placement chooses. found is false if there is no such
// Placement, and isDecided is false if OCM has not decided it yet.
func (h *Hub) Decided(
	ctx context.Context, namespace, placement string,
) (clusters map[string]bool, found, isDecided, hidden bool, err error) {
	object, hidden, err := read(ctx, h, "Placements", namespace, placement, &clusterv1beta1.Placement{})
	if object == nil {
		return nil, false, false, hidden, err
	}
	clusters = map[string]bool{}
	hidden, err = h.eachDecision(ctx, func(d *clusterv1beta1.PlacementDecision) {
		isDecided = true
		for _, cluster := range rule.DecidedClusters(d) {
			clusters[cluster] = true
		}
	}, client.InNamespace(namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: placement})
	return clusters, true, isDecided, hidden, err
}

// eachDecision reads slices of Placements' decisions, page by page.
func (h *Hub) eachDecision(
	ctx context.Context, take func(*clusterv1beta1.PlacementDecision), opts ...client.ListOption,
) (hidden bool, err error) {
	return each(ctx, h, "PlacementDecisions", &clusterv1beta1.PlacementDecisionList{}, take, opts...)
}

// Naming returns the Placements of a namespace whose decisions name a cluster.
func (h *Hub) Naming(ctx context.Context, namespace, cluster string) (placements []string, hidden bool, err error) {
	hidden, err = h.eachDecision(ctx, func(d *clusterv1beta1.PlacementDecision) {
		placement := rule.PlacementOf(d)
		if slices.Contains(rule.DecidedClusters(d), cluster) && !slices.Contains(placements, placement) {
			placements = append(placements, placement)
		}
	}, client.InNamespace(namespace))
	slices.Sort(placements)
	return placements, hidden, err
}

// PropertyNames returns the names of the properties of a cluster, for completion: those of its
// claims, or, for readers who may not read these, those of its profile in a namespace.
func (h *Hub) PropertyNames(ctx context.Context, namespace, cluster string) ([]string, error) {
	managed, hidden, err := h.cluster(ctx, cluster)
	var names []string
	if managed != nil {
		for _, claim := range managed.Status.ClusterClaims {
			names = append(names, claim.Name)
		}
	}
	if err != nil || !hidden {
		return names, err
	}
	profile, _, err := h.Profile(ctx, namespace, cluster)
	if profile != nil {
		for _, property := range profile.Status.Properties {
			names = append(names, property.Name)
		}
	}
	return names, err
}
