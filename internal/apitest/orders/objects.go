package orders

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Kind is a kind of objects with a cache, and a watch, of its own.
type Kind int

// The kinds.
const (
	Namespaces Kind = iota
	Clusters
	Addons
	Sets
	Bindings
	Placements
	Decisions
	Profiles
	Accounts
	Copies
	References
	Definitions // CustomResourceDefinitions
	Installs    // ClusterManagementAddOns
	kinds
)

func (k Kind) String() string {
	return []string{
		"namespaces", "clusters", "addons", "sets", "bindings", "placements", "decisions", "profiles", "accounts",
		"copies", "references", "definitions", "installs",
	}[k]
}

// object is one version of an object. Equal versions are the same object.
type object struct {
	client.Object
	id int
}

// interned holds every version that any state has had.
var interned = map[string]*object{}

func intern(kind Kind, obj client.Object) *object {
	text, err := json.Marshal(obj)
	if err != nil {
		panic(err) // impossible for API types
	}
	key := strconv.Itoa(int(kind)) + string(text)
	if interned[key] == nil {
		interned[key] = &object{Object: obj, id: len(interned) + 1}
	}
	return interned[key]
}

// store holds the objects of one kind. It is never changed, only replaced.
type store map[types.NamespacedName]*object

func (s store) with(key types.NamespacedName, obj *object) store {
	next := maps.Clone(s)
	if next == nil {
		next = store{}
	}
	if obj == nil {
		delete(next, key)
	} else {
		next[key] = obj
	}
	return next
}

func (s store) keys() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(s), func(a, b types.NamespacedName) int {
		if a.Namespace != b.Namespace {
			if a.Namespace < b.Namespace {
				return -1
			}
			return 1
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// event is what a watch delivers: the new version of an object, or that it is gone.
type event struct {
	key types.NamespacedName
	obj *object // nil: deleted
}

// Get returns the hub's object of a type, nil if there is none.
func Get[T client.Object](s *State, kind Kind, key types.NamespacedName) T {
	var none T
	if obj := s.hub[kind][key]; obj != nil {
		return obj.Object.(T)
	}
	return none
}

// Cached is Get for the manager's cache.
func Cached[T client.Object](s *State, kind Kind, key types.NamespacedName) T {
	var none T
	if obj := s.cached[kind][key]; obj != nil {
		return obj.Object.(T)
	}
	return none
}

// Create stores an object on the hub, with a UID and a resource version.
func (s *State) Create(kind Kind, obj client.Object) client.Object {
	key := client.ObjectKeyFromObject(obj)
	if s.hub[kind][key] != nil {
		panic("exists: " + key.String())
	}
	births := maps.Clone(s.births)
	if births == nil {
		births = map[birth]int{}
	}
	births[birth{kind, key}]++
	s.births = births
	obj.SetUID(types.UID(kind.String() + "-" + key.Namespace + "-" + key.Name + "-" +
		strconv.Itoa(births[birth{kind, key}])))
	created := s.Time()
	if kind == Definitions && births[birth{kind, key}] == 1 {
		created = long
	}
	obj.SetCreationTimestamp(metav1.NewTime(created))
	if kind == Clusters {
		s.registered(key.Name)
	}
	return s.put(kind, obj)
}

// Update stores a changed object on the hub.
func (s *State) Update(kind Kind, obj client.Object) client.Object { return s.put(kind, obj) }

// Delete removes an object from the hub.
func (s *State) Delete(kind Kind, key types.NamespacedName) {
	if s.hub[kind][key] == nil {
		panic("does not exist: " + key.String())
	}
	s.versions[kind]++
	s.hub[kind] = s.hub[kind].with(key, nil)
	s.queue[kind] = append(slices.Clip(s.queue[kind]), event{key: key})
	s.witness()
}

func (s *State) put(kind Kind, obj client.Object) client.Object {
	s.versions[kind]++
	obj.SetResourceVersion(strconv.Itoa(s.versions[kind]))
	key, stored := client.ObjectKeyFromObject(obj), intern(kind, obj)
	s.hub[kind] = s.hub[kind].with(key, stored)
	s.queue[kind] = append(slices.Clip(s.queue[kind]), event{key: key, obj: stored})
	s.witness()
	return stored.Object
}

// Edit stores a changed copy of an object of the hub.
func Edit[T client.Object](s *State, kind Kind, key types.NamespacedName, change func(T)) {
	next := s.hub[kind][key].DeepCopyObject().(T)
	change(next)
	s.put(kind, next)
}

// Named is the key of an object.
func Named(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// AddNamespace stores a Namespace.
func (s *State) AddNamespace(name string) {
	namespace := kube.Partial(kube.NamespaceKind)
	namespace.Name = name
	s.Create(Namespaces, namespace)
}

// AddSet stores a set.
func (s *State) AddSet(name string, selectorType clusterv1beta2.SelectorType) {
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.ClusterSelector.SelectorType = selectorType
	if selectorType == clusterv1beta2.LabelSelector {
		set.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{}
	}
	s.Create(Sets, set)
}

// AddCluster stores an accepted cluster of a set.
func (s *State) AddCluster(name, set string) { s.register(name, set, true) }

// register stores a cluster, which may yet have to be accepted.
func (s *State) register(name, set string, accepted bool) {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1beta2.ClusterSetLabel: set},
	}}
	cluster.Spec.HubAcceptsClient = accepted
	s.Create(Clusters, cluster)
}

// AddAddon stores the addon of a cluster.
func (s *State) AddAddon(cluster string) {
	s.Create(Addons, &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: contract.AddonName},
	})
}

// Bind binds a set to a namespace.
func (s *State) Bind(namespace, set string) {
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}}
	binding.Spec.ClusterSet = set
	binding.Status.Conditions = []metav1.Condition{
		{Type: clusterv1beta2.ClusterSetBindingBoundType, Status: metav1.ConditionTrue},
	}
	s.Create(Bindings, binding)
}

// Place makes a publishing Placement decide for some clusters: first in its slice, then in its
// status, as Open Cluster Management does.
func (s *State) Place(namespace, name string, clusters ...string) {
	s.Slice(namespace, name, clusters...)
	s.Schedule(namespace, name, len(clusters))
}

// AddPlacement stores a publishing Placement without decisions.
func (s *State) AddPlacement(namespace, name string) {
	s.Create(Placements, &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{contract.LabelPublish: "true"},
	}})
}

// Schedule says in the status of a Placement how many clusters it selects.
func (s *State) Schedule(namespace, name string, selected int) {
	Edit(s, Placements, Named(namespace, name), func(p *clusterv1beta1.Placement) {
		p.Status.NumberOfSelectedClusters = int32(selected) //nolint:gosec // it is small
		p.Status.Conditions = []metav1.Condition{
			{Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue},
		}
	})
}

// Slice makes the first slice of a Placement contain some clusters.
func (s *State) Slice(namespace, placement string, clusters ...string) {
	s.SliceNumbered(0, namespace, placement, clusters...)
}

// SliceNumbered is Slice for any slice.
func (s *State) SliceNumbered(number int, namespace, placement string, clusters ...string) {
	key := Named(namespace, placement+"-decision-"+strconv.Itoa(number))
	next := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: key.Name, Labels: map[string]string{clusterv1beta1.PlacementLabel: placement},
	}}
	for _, cluster := range clusters {
		next.Status.Decisions = append(next.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	if now := Get[*clusterv1beta1.PlacementDecision](s, Decisions, key); now != nil {
		next.UID, next.CreationTimestamp = now.UID, now.CreationTimestamp
		s.put(Decisions, next)
		return
	}
	s.Create(Decisions, next)
}

// Publish stores a profile as the manager makes it.
func (s *State) Publish(namespace, cluster string) {
	s.Create(Profiles, newProfile(Named(namespace, cluster)))
}

func newProfile(pair types.NamespacedName) *inventoryv1alpha1.ClusterProfile {
	profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{
		Namespace: pair.Namespace, Name: pair.Name,
		Labels: map[string]string{contract.LabelManagedBy: contract.ManagedBy},
	}}
	profile.Spec.ClusterManager.Name = contract.ClusterManagerName
	return profile
}

// AddDefinition stores a CRD that can be deleted. The others always exist.
func (s *State) AddDefinition(name string) {
	crd := kube.Partial(kube.CRDKind)
	crd.Name = name
	s.Create(Definitions, crd)
}

// InstallThrough makes a Placement of the namespace "install" the one with which the addon is installed,
// and decide for some clusters.
func (s *State) InstallThrough(placement string, clusters ...string) {
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: contract.AddonName}}
	definition.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyPlacements
	definition.Spec.InstallStrategy.Placements = []addonv1beta1.PlacementStrategy{
		{PlacementRef: addonv1beta1.PlacementRef{Namespace: "install", Name: placement}},
	}
	s.Create(Installs, definition)
	s.Create(Placements, &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "install", Name: placement}})
	s.Place("install", placement, clusters...)
}

// noon is when every world begins, and long is when the CRDs were created.
var (
	noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	long = noon.AddDate(-1, 0, 0)
)
