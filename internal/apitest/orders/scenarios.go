package orders

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// Exists is a condition of a change.
func Exists(kind Kind, namespace, name string) func(*State) bool {
	return func(s *State) bool { return s.hub[kind][Named(namespace, name)] != nil }
}

// Absent is the opposite of Exists.
func Absent(kind Kind, namespace, name string) func(*State) bool {
	return func(s *State) bool { return s.hub[kind][Named(namespace, name)] == nil }
}

// Deletes is the deletion of an object.
func Deletes(kind Kind, namespace, name string) Change {
	return Change{
		Name: "delete " + kind.String() + " " + Named(namespace, name).String(), If: Exists(kind, namespace, name),
		Do: func(s *State) { s.Delete(kind, Named(namespace, name)) },
	}
}

// Changes is a change of an object.
func Changes[T client.Object](kind Kind, namespace, name, what string, change func(T)) Change {
	return Change{
		Name: what + " " + kind.String() + " " + Named(namespace, name).String(), If: Exists(kind, namespace, name),
		Do: func(s *State) { Edit(s, kind, Named(namespace, name), change) },
	}
}

// Terminating marks an object as being deleted.
func Terminating[T client.Object](obj T) {
	at := metav1.NewTime(noon)
	obj.SetDeletionTimestamp(&at)
}

// PairsOf returns pairs of one namespace.
func PairsOf(namespace string, clusters ...string) []types.NamespacedName {
	all := make([]types.NamespacedName, 0, len(clusters))
	for _, cluster := range clusters {
		all = append(all, Named(namespace, cluster))
	}
	return all
}

// Fleet makes namespace n1, to which the exclusive set s1 is bound, and clusters of that set
// with the addon.
func Fleet(s *State, clusters ...string) {
	s.AddNamespace("n1")
	s.AddSet("s1", clusterv1beta2.ExclusiveClusterSetLabel)
	s.Bind("n1", "s1")
	for _, cluster := range clusters {
		s.AddCluster(cluster, "s1")
		s.AddAddon(cluster)
	}
}

// ProfileScenarios are those of the rule and of profiles.
func ProfileScenarios() []Scenario {
	return []Scenario{
		membership(), moving(), choosing(), vanishing(), requiring(), owners(), doubts(), exclusive(), Slicing(),
		grouping(), ending(), Installing(), installingThere(), losingBindings(), losingPlacements(), losingClusters(),
		restoringBindings(), restoringPlacements(), restoringClusters(), missing(), required(), widening(),
		losingAtOnce(), registeringAgain(), installingAgain(), binding(),
	}
}

// membership: a cluster and its addon come and go.
func membership() Scenario {
	return Scenario{
		Name: "membership", Pairs: PairsOf("n1", "c1", "c2"),
		Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 1,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Changes(Clusters, "", "c1", "reject", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }),
			Changes(Clusters, "", "c1", "accept", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }),
			Changes(Clusters, "", "c2", "detach", Terminating[*clusterv1.ManagedCluster]),
			Deletes(Clusters, "", "c1"),
			Changes(Addons, "c1", contract.AddonName, "begin to delete", Terminating[*addonv1beta1.ManagedClusterAddOn]),
			Deletes(Addons, "c1", contract.AddonName),
			{Name: "add addon c1", If: Absent(Addons, "c1", contract.AddonName), Do: func(s *State) { s.AddAddon("c1") }},
			{Name: "register c1", If: Absent(Clusters, "", "c1"), Do: func(s *State) { s.AddCluster("c1", "s1") }},
		},
	}
}

// moving: a cluster changes its set while sets are bound and unbound.
func moving() Scenario {
	return Scenario{
		Name: "moving", Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Pairs: []types.NamespacedName{Named("n1", "c1"), Named("n2", "c1")},
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddNamespace("n2")
			s.AddSet("s2", clusterv1beta2.ExclusiveClusterSetLabel)
			s.Bind("n2", "s2")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Changes(Clusters, "", "c1", "move to s2", func(c *clusterv1.ManagedCluster) {
				c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "s2"}
			}),
			{Name: "bind s2 to n1", If: Absent(Bindings, "n1", "s2"), Do: func(s *State) { s.Bind("n1", "s2") }},
			Deletes(Bindings, "n2", "s2"),
			Deletes(Bindings, "n1", "s1"),
			Changes(Bindings, "n1", "s1", "withhold", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Labels = map[string]string{contract.LabelPublish: "false"}
			}),
			Changes(Bindings, "n1", "s1", "begin to delete", Terminating[*clusterv1beta2.ManagedClusterSetBinding]),
		},
	}
}

// choosing: a Placement's decisions change, slice and status one after the other.
func choosing() Scenario {
	return Scenario{
		Name: "choosing", Pairs: PairsOf("n1", "c1", "c2"), Budget: 4, Tick: 2 * time.Second, Ticks: 2, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2")
			s.AddPlacement("n1", "p1")
			s.Place("n1", "p1", "c1")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			{Name: "slice c2", Do: func(s *State) { s.Slice("n1", "p1", "c2") }},
			{Name: "slice c1 c2", Do: func(s *State) { s.Slice("n1", "p1", "c1", "c2") }},
			{Name: "slice none", Do: func(s *State) { s.Slice("n1", "p1") }},
			{Name: "select 0", Do: func(s *State) { s.Schedule("n1", "p1", 0) }},
			{Name: "select 2", Do: func(s *State) { s.Schedule("n1", "p1", 2) }},
		},
	}
}

// inTurn makes each of some changes wait for the one before.
func inTurn(changes ...Change) []Change {
	for i := range changes {
		changes[i].If = func(s *State) bool { return ones(s.done) == i }
	}
	return changes
}

// grouping: a cluster changes its decision group, so it is in no slice until that of its next group is written.
func grouping() Scenario {
	c1 := Named("n1", "c1")
	return Scenario{
		Name: "grouping", Pairs: PairsOf("n1", "c1"), Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddPlacement("n1", "p1")
			Edit(s, Placements, Named("n1", "p1"), func(p *clusterv1beta1.Placement) {
				p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(3)
			})
			s.Place("n1", "p1", "a", "c1", "d")
			s.Publish("n1", "c1")
		},
		Changes: inTurn(
			Change{Name: "slice 0 without c1", Do: func(s *State) {
				s.moves(c1)
				s.Slice("n1", "p1", "a", "d")
			}},
			Change{Name: "slice 0 with b", Do: func(s *State) { s.Slice("n1", "p1", "a", "b", "d") }},
			Change{Name: "slice 1 with c1", Do: func(s *State) {
				s.moves()
				s.SliceNumbered(1, "n1", "p1", "c1")
				s.Schedule("n1", "p1", 4)
			}},
		),
	}
}

// ending: a namespace is being deleted, while a cluster comes and others go, and another one is created.
func ending() Scenario {
	return Scenario{
		Name: "ending", Pairs: append(PairsOf("n1", "c1", "c2"), Named("n2", "c1")), Budget: 2,
		Tick: 11 * time.Second, Ticks: 0, Crashes: 0, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Changes(Namespaces, "", "n1", "begin to delete", Terminating[*metav1.PartialObjectMetadata]),
			Deletes(Bindings, "n1", "s1"),
			{Name: "create n2, which requires a Placement", If: Absent(Namespaces, "", "n2"), Do: func(s *State) {
				s.AddNamespace("n2")
				Edit(s, Namespaces, Named("", "n2"), requirePlacement)
				s.Bind("n2", "s1")
			}},
		},
	}
}

func requirePlacement(namespace *metav1.PartialObjectMetadata) {
	namespace.Annotations = map[string]string{contract.AnnotationRequirePlacement: "true"}
}

// vanishing: Placements come and go, and are replaced.
func vanishing() Scenario {
	return Scenario{
		Name: "vanishing", Pairs: PairsOf("n1", "c1", "c2"),
		Budget: 3, Tick: 11 * time.Second, Ticks: 2, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2")
			s.AddPlacement("n1", "p1")
			s.Place("n1", "p1", "c1")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Deletes(Placements, "n1", "p1"),
			{
				Name: "delete decisions of p1", If: Exists(Decisions, "n1", "p1-decision-0"),
				Do: func(s *State) { s.Delete(Decisions, Named("n1", "p1-decision-0")) },
			},
			{Name: "create p1", If: Absent(Placements, "n1", "p1"), Do: func(s *State) { s.AddPlacement("n1", "p1") }},
			{Name: "p1 chooses c1", If: Exists(Placements, "n1", "p1"), Do: func(s *State) { s.Place("n1", "p1", "c1") }},
			Changes(Placements, "n1", "p1", "unpublish", func(p *clusterv1beta1.Placement) { p.Labels = nil }),
			Changes(Namespaces, "", "n1", "require a Placement in", requirePlacement),
		},
	}
}

// owners: profiles of others, and ours that others change or delete.
func owners() Scenario {
	return Scenario{
		Name: "owners", Pairs: PairsOf("n1", "c1", "c2", "c3"),
		Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 1,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2", "c3")
			s.Publish("n1", "c1")
			foreign := newProfile(Named("n1", "c2"))
			foreign.Spec.ClusterManager.Name, foreign.Labels = "another", nil
			s.Create(Profiles, foreign)
			unmarked := newProfile(Named("n1", "c3"))
			unmarked.Labels = nil
			s.Create(Profiles, unmarked)
		},
		Changes: []Change{
			Deletes(Profiles, "n1", "c1"),
			Deletes(Profiles, "n1", "c2"),
			Changes(Profiles, "n1", "c1", "unmark", func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = nil }),
			Deletes(Bindings, "n1", "s1"),
			{Name: "bind s1 to n1", If: Absent(Bindings, "n1", "s1"), Do: func(s *State) { s.Bind("n1", "s1") }},
		},
	}
}

// doubts: bindings and sets about which nothing is certain.
func doubts() Scenario {
	return Scenario{
		Name: "doubts", Pairs: PairsOf("n1", "c1"), Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddSet("all", clusterv1beta2.LabelSelector)
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Changes(Bindings, "n1", "s1", "forget the condition of", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Status.Conditions = nil
			}),
			Changes(Bindings, "n1", "s1", "unbind", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Status.Conditions = []metav1.Condition{
					{Type: clusterv1beta2.ClusterSetBindingBoundType, Status: metav1.ConditionFalse},
				}
			}),
			Deletes(Sets, "", "s1"),
			{Name: "create s1", If: Absent(Sets, "", "s1"), Do: func(s *State) {
				s.AddSet("s1", clusterv1beta2.ExclusiveClusterSetLabel)
			}},
			{Name: "bind all to n1", If: Absent(Bindings, "n1", "all"), Do: func(s *State) { s.Bind("n1", "all") }},
			Changes(Clusters, "", "c1", "take from its set", func(c *clusterv1.ManagedCluster) { c.Labels = nil }),
		},
	}
}

// requiring: a namespace begins to require a Placement that has just been created.
func requiring() Scenario {
	return Scenario{
		Name: "requiring", Pairs: PairsOf("n1", "c1"), Budget: 2, Tick: 11 * time.Second, Ticks: 1, Crashes: 0, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			{Name: "p1 chooses c1", Do: func(s *State) {
				s.AddPlacement("n1", "p1")
				s.Place("n1", "p1", "c1")
			}},
			{Name: "require a Placement in n1", If: Exists(Placements, "n1", "p1"), Do: func(s *State) {
				Edit(s, Namespaces, Named("", "n1"), requirePlacement)
			}},
		},
	}
}

// binding: a set is bound in a namespace in which a Placement has just been created.
func binding() Scenario {
	return Scenario{
		Name: "binding", Pairs: PairsOf("n1", "c1", "c2"), Budget: 2, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2")
			s.Delete(Bindings, Named("n1", "s1"))
		},
		Changes: inTurn(
			Change{Name: "p1 chooses c1", Do: func(s *State) {
				s.AddPlacement("n1", "p1")
				s.Place("n1", "p1", "c1")
			}},
			Change{Name: "bind s1 to n1", Do: func(s *State) { s.Bind("n1", "s1") }},
		),
	}
}

// exclusive: a set of another type is bound, and only exclusive ones publish.
func exclusive() Scenario {
	return Scenario{
		Name: "exclusive", Pairs: PairsOf("n1", "c1"), Budget: 2, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		ExclusiveOnly: true,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddSet("all", clusterv1beta2.LabelSelector)
			s.Bind("n1", "all")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Deletes(Bindings, "n1", "s1"),
			Deletes(Sets, "", "all"),
			Changes(Sets, "", "s1", "leave out the type of", func(of *clusterv1beta2.ManagedClusterSet) {
				of.Spec.ClusterSelector.SelectorType = ""
			}),
			Changes(Bindings, "n1", "s1", "forget the condition of", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Status.Conditions = nil
			}),
		},
	}
}

// many returns the names of clusters that are in no inventory, and fill a slice but for some.
func many(but int) []string {
	names := make([]string, 0, 100-but)
	for i := range 100 - but {
		names = append(names, fmt.Sprintf("a%02d", i))
	}
	return names
}

// Slicing is a scenario: a Placement chooses more clusters than one slice holds, and clusters move between its slices.
func Slicing() Scenario {
	c1 := Named("n1", "c1")
	return Scenario{
		Name: "slicing", Pairs: PairsOf("n1", "c1", "c2"), Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2")
			s.AddPlacement("n1", "p1")
			s.Slice("n1", "p1", append(many(1), "c1")...)
			s.SliceNumbered(1, "n1", "p1", "c2")
			s.Schedule("n1", "p1", 101)
			s.Publish("n1", "c1")
			s.Publish("n1", "c2")
		},
		Changes: []Change{
			{Name: "slice 0 without c1, which b pushes out", Do: func(s *State) {
				s.moves(c1)
				s.Slice("n1", "p1", append(many(1), "b")...)
			}},
			{Name: "slice 1 with c1", If: func(s *State) bool { return s.moving[c1] }, Do: func(s *State) {
				s.moves()
				s.SliceNumbered(1, "n1", "p1", "c1", "c2")
			}},
			{Name: "select 102", If: func(s *State) bool { return s.moving != nil && len(s.moving) == 0 }, Do: func(s *State) {
				s.Schedule("n1", "p1", 102)
			}},
			{Name: "slice 0 without c1, which is no longer chosen", If: func(s *State) bool { return len(s.moving) == 0 },
				Do: func(s *State) { s.Slice("n1", "p1", append(many(1), "c2")...) }},
			{Name: "drop slice 1", If: func(s *State) bool { return len(s.moving) == 0 }, Do: func(s *State) {
				s.Delete(Decisions, Named("n1", "p1-decision-1"))
				s.Schedule("n1", "p1", 100)
			}},
		},
	}
}

// moves records which clusters are moving between slices.
func (s *State) moves(pairs ...types.NamespacedName) {
	s.moving = map[types.NamespacedName]bool{}
	for _, pair := range pairs {
		s.moving[pair] = true
	}
}

// Moves reports whether a pair's cluster is moving between slices. Copies stay for a shorter time than
// profiles then.
func (s *State) Moves(pair types.NamespacedName) bool { return s.moving[pair] }

// Installing is a scenario: a Placement installs the addon, which Open Cluster Management removes for a moment.
func Installing() Scenario {
	return Scenario{
		Name: "installing", Pairs: PairsOf("n1", "c1"), Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.InstallThrough("all", "c1")
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Changes(Addons, "c1", contract.AddonName, "begin to delete", Terminating[*addonv1beta1.ManagedClusterAddOn]),
			Deletes(Addons, "c1", contract.AddonName),
			{Name: "add addon c1", If: Absent(Addons, "c1", contract.AddonName), Do: func(s *State) { s.AddAddon("c1") }},
			{Name: "slice of no cluster", Do: func(s *State) { s.Slice("install", "all") }},
			{Name: "install nowhere", Do: func(s *State) { s.Place("install", "all") }},
			Deletes(Installs, "", contract.AddonName),
			Deletes(Bindings, "n1", "s1"),
		},
	}
}

// installingThere: the namespace has a publishing Placement, too.
func installingThere() Scenario {
	both := Installing()
	both.Name, both.Budget = "installing there", 3
	begin := both.Begin
	both.Begin = func(s *State) {
		begin(s)
		s.AddPlacement("n1", "p1")
		s.Place("n1", "p1", "c1")
	}
	both.Changes = []Change{
		Deletes(Addons, "c1", contract.AddonName),
		{Name: "choose none", Do: func(s *State) { s.Place("n1", "p1") }},
		{Name: "select 2", Do: func(s *State) { s.Schedule("n1", "p1", 2) }},
		{Name: "install nowhere", Do: func(s *State) { s.Place("install", "all") }},
	}
	return both
}

// Loses is the deletion of a CRD: the API server first deletes its objects.
func Loses(definition string, kind Kind) Change {
	return Change{
		Name: "begin to delete the CRD of " + kind.String(),
		If: func(s *State) bool {
			crd := s.hub[Definitions][Named("", definition)]
			return crd != nil && crd.GetDeletionTimestamp() == nil
		},
		Do: func(s *State) {
			Edit(s, Definitions, Named("", definition), Terminating[*metav1.PartialObjectMetadata])
			for _, key := range s.Keys(kind) {
				s.Delete(kind, key)
			}
		},
	}
}

// Recreates ends the deletion of a CRD, and creates it again without its objects.
func Recreates(definition string) Change {
	return Change{
		Name: "recreate the CRD " + definition,
		If: func(s *State) bool {
			crd := s.hub[Definitions][Named("", definition)]
			return crd != nil && crd.GetDeletionTimestamp() != nil
		},
		Do: func(s *State) {
			s.Delete(Definitions, Named("", definition))
			s.AddDefinition(definition)
		},
	}
}

// losingBindings: the CRD of bindings is deleted and recreated, and the bindings are restored.
func losingBindings() Scenario {
	return Scenario{
		Name: "losing bindings", Pairs: []types.NamespacedName{Named("n1", "c1"), Named("n2", "c1")},
		Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddNamespace("n2")
			s.Publish("n1", "c1")
			s.Publish("n2", "c1") // it was bound while no manager ran
			s.AddDefinition(rule.BindingCRD)
		},
		Changes: []Change{
			Loses(rule.BindingCRD, Bindings),
			Recreates(rule.BindingCRD),
			{Name: "restore the binding", If: func(s *State) bool {
				return s.hub[Definitions][Named("", rule.BindingCRD)].GetDeletionTimestamp() == nil && s.hub[Bindings].keys() == nil
			}, Do: func(s *State) { s.Bind("n1", "s1") }},
			Deletes(Addons, "c1", contract.AddonName),
			Changes(Clusters, "", "c1", "detach", Terminating[*clusterv1.ManagedCluster]),
		},
	}
}

// losingPlacements: the same for Placements, without which a namespace would publish more.
func losingPlacements() Scenario {
	return Scenario{
		Name: "losing Placements", Pairs: PairsOf("n1", "c1", "c2"),
		Budget: 3, Tick: 11 * time.Second, Ticks: 2, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1", "c2")
			s.AddPlacement("n1", "p1")
			s.Place("n1", "p1", "c1")
			s.Publish("n1", "c1")
			s.AddDefinition(rule.PlacementCRD)
		},
		Changes: []Change{
			Loses(rule.PlacementCRD, Placements),
			Recreates(rule.PlacementCRD),
			{
				Name: "create p1", If: func(s *State) bool {
					return s.hub[Definitions][Named("", rule.PlacementCRD)].GetDeletionTimestamp() == nil &&
						s.hub[Placements][Named("n1", "p1")] == nil
				},
				Do: func(s *State) {
					s.AddPlacement("n1", "p1")
					s.Schedule("n1", "p1", 1)
				},
			},
			{Name: "choose none", If: Exists(Placements, "n1", "p1"), Do: func(s *State) { s.Place("n1", "p1") }},
			Changes(Namespaces, "", "n1", "require a Placement in", requirePlacement),
		},
	}
}

// losingClusters: the same for ManagedClusters, and for addons.
func losingClusters() Scenario {
	return Scenario{
		Name: "losing clusters", Pairs: []types.NamespacedName{Named("n1", "c1"), Named("n2", "c1")},
		Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddNamespace("n2")
			s.Publish("n1", "c1")
			s.Publish("n2", "c1") // it was bound while no manager ran
			s.AddDefinition(rule.ClusterCRD)
			s.AddDefinition(rule.AddonCRD)
		},
		Changes: []Change{
			Loses(rule.ClusterCRD, Clusters),
			Recreates(rule.ClusterCRD),
			Loses(rule.AddonCRD, Addons),
			Recreates(rule.AddonCRD),
			{Name: "register c1", If: func(s *State) bool {
				return s.hub[Definitions][Named("", rule.ClusterCRD)].GetDeletionTimestamp() == nil && s.hub[Clusters].keys() == nil
			}, Do: func(s *State) { s.register("c1", "s1", false) }},
			Changes(Addons, "c1", contract.AddonName, "begin to delete", Terminating[*addonv1beta1.ManagedClusterAddOn]),
		},
	}
}

// lost deletes CRDs and recreates them without their objects.
func lost(s *State, definitions map[string]Kind) {
	for name, kind := range definitions {
		Loses(name, kind).Do(s)
		Recreates(name).Do(s)
	}
}

// restoringBindings: the CRD of bindings was recreated, and its objects may be restored.
func restoringBindings() Scenario {
	late := losingBindings()
	late.Name, late.Budget, late.Changes = "restoring bindings", 2, late.Changes[2:]
	late.Late = func(s *State) { lost(s, map[string]Kind{rule.BindingCRD: Bindings}) }
	return late
}

// restoringPlacements: the same for Placements.
func restoringPlacements() Scenario {
	late := losingPlacements()
	late.Name, late.Budget, late.Changes = "restoring Placements", 2, late.Changes[2:]
	late.Late = func(s *State) { lost(s, map[string]Kind{rule.PlacementCRD: Placements}) }
	return late
}

// restoringClusters: the same for clusters and addons.
func restoringClusters() Scenario {
	late := losingClusters()
	late.Name, late.Budget, late.Changes = "restoring clusters", 3, append(late.Changes[4:],
		Change{Name: "accept clusters c1", If: Exists(Clusters, "", "c1"), Do: func(s *State) {
			Edit(s, Clusters, Named("", "c1"), func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
		}},
		Change{
			Name: "add addon c1", If: Absent(Addons, "c1", contract.AddonName), Do: func(s *State) { s.AddAddon("c1") },
		})
	late.Late = func(s *State) {
		lost(s, map[string]Kind{rule.ClusterCRD: Clusters})
		lost(s, map[string]Kind{rule.AddonCRD: Addons})
	}
	return late
}

// missing: the CRD of sets is deleted, and one of two profiles is in a namespace without a binding.
func missing() Scenario {
	return Scenario{
		Name: "missing", Pairs: []types.NamespacedName{Named("n1", "c1"), Named("n2", "c1")},
		Budget: 2, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddNamespace("n2")
			s.Publish("n1", "c1")
			s.Publish("n2", "c1") // it was bound while no manager ran
			s.AddDefinition(rule.SetCRD)
		},
		Late: Loses(rule.SetCRD, Sets).Do,
		Changes: []Change{
			Recreates(rule.SetCRD),
			Deletes(Bindings, "n1", "s1"),
			Changes(Clusters, "", "c1", "take from its set", func(c *clusterv1.ManagedCluster) { c.Labels = nil }),
		},
	}
}

// required: the Placement that a namespace requires is deleted, and perhaps created again.
func required() Scenario {
	return Scenario{
		Name: "required", Pairs: PairsOf("n1", "c1"), Budget: 2, Tick: 11 * time.Second, Ticks: 2, Crashes: 0, Losses: 0,
		Begin: func(s *State) {
			Fleet(s, "c1")
			s.AddPlacement("n1", "p1")
			s.Place("n1", "p1", "c1")
			Edit(s, Namespaces, Named("", "n1"), requirePlacement)
			s.Publish("n1", "c1")
		},
		Changes: []Change{
			Deletes(Placements, "n1", "p1"),
			{Name: "create p1", If: Absent(Placements, "n1", "p1"), Do: func(s *State) {
				s.AddPlacement("n1", "p1")
				s.Schedule("n1", "p1", 1)
			}},
		},
	}
}

// widening: without its one Placement, which goes with its CRD, a namespace would publish more.
func widening() Scenario {
	few := losingPlacements()
	few.Name, few.Pairs, few.Changes = "widening", PairsOf("n1", "c2"), few.Changes[:1]
	few.Budget, few.Ticks, few.Crashes = 1, 1, 0
	return few
}

// losingAtOnce: the CRD of clusters is deleted and recreated, and nothing else happens.
func losingAtOnce() Scenario {
	few := losingClusters()
	few.Name, few.Budget, few.Crashes, few.Ticks, few.Changes = "losing clusters at once", 2, 0, 0, few.Changes[:2]
	few.Pairs = few.Pairs[:1]
	return few
}

// registeringAgain: a cluster without a profile is deleted, and registered again under its name, without the addon.
func registeringAgain() Scenario {
	return Scenario{
		Name: "registering again", Pairs: PairsOf("n1", "c1"), Budget: 1, Tick: 11 * time.Second, Ticks: 0,
		Begin: func(s *State) { Fleet(s, "c1") },
		Changes: []Change{
			{Name: "register c1 again", Do: func(s *State) {
				s.Delete(Clusters, Named("", "c1"))
				s.Delete(Addons, Named("c1", contract.AddonName))
				s.AddCluster("c1", "s1")
			}},
		},
	}
}

// installingAgain: an addon is deleted and created again, before the install strategy ends.
func installingAgain() Scenario {
	again := Installing()
	hasAddon, noAddon := Exists(Addons, "c1", contract.AddonName), Absent(Addons, "c1", contract.AddonName)
	isFirst := func(s *State) bool { return s.births[birth{Addons, Named("c1", contract.AddonName)}] == 1 }
	again.Name, again.Crashes, again.Ticks = "installing again", 0, 0
	again.Changes = []Change{
		{
			Name: "delete addon c1", If: func(s *State) bool { return hasAddon(s) && isFirst(s) },
			Do: func(s *State) { s.Delete(Addons, Named("c1", contract.AddonName)) },
		},
		{Name: "add addon c1", If: noAddon, Do: func(s *State) { s.AddAddon("c1") }},
		{
			Name: "install nowhere", If: func(s *State) bool { return hasAddon(s) && !isFirst(s) },
			Do: func(s *State) { s.Place("install", "all") },
		},
	}
	return again
}
