package orders

import (
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
)

// exists is a condition of a change.
func exists(kind Kind, namespace, name string) func(*State) bool {
	return func(s *State) bool { return s.hub[kind][named(namespace, name)] != nil }
}

func lacks(kind Kind, namespace, name string) func(*State) bool {
	return func(s *State) bool { return s.hub[kind][named(namespace, name)] == nil }
}

func deletes(kind Kind, namespace, name string) Change {
	return Change{
		Name: "delete " + kind.String() + " " + named(namespace, name).String(), If: exists(kind, namespace, name),
		Do: func(s *State) { s.Delete(kind, named(namespace, name)) },
	}
}

func changes[T client.Object](kind Kind, namespace, name, what string, change func(T)) Change {
	return Change{
		Name: what + " " + kind.String() + " " + named(namespace, name).String(), If: exists(kind, namespace, name),
		Do: func(s *State) { Edit(s, kind, named(namespace, name), change) },
	}
}

func terminating[T client.Object](obj T) {
	at := metav1.NewTime(noon)
	obj.SetDeletionTimestamp(&at)
}

func pairs(namespace string, clusters ...string) []types.NamespacedName {
	all := make([]types.NamespacedName, 0, len(clusters))
	for _, cluster := range clusters {
		all = append(all, named(namespace, cluster))
	}
	return all
}

// fleet makes namespace n1, to which the exclusive set s1 is bound, and clusters of that set
// with the addon.
func fleet(s *State, clusters ...string) {
	s.addNamespace("n1")
	s.addSet("s1", clusterv1beta2.ExclusiveClusterSetLabel)
	s.bind("n1", "s1")
	for _, cluster := range clusters {
		s.addCluster(cluster, "s1")
		s.addAddon(cluster)
	}
}

// Profiles are the scenarios of the rule and of profiles.
func ProfileScenarios() []Scenario {
	return []Scenario{membership(), moving(), choosing(), vanishing(), owners(), doubts()}
}

// membership: a cluster and its addon come and go.
func membership() Scenario {
	return Scenario{
		Name: "membership", Pairs: pairs("n1", "c1", "c2"), Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 1,
		Begin: func(s *State) {
			fleet(s, "c1", "c2")
			s.publish("n1", "c1")
		},
		Changes: []Change{
			changes(Clusters, "", "c1", "reject", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }),
			changes(Clusters, "", "c1", "accept", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }),
			changes(Clusters, "", "c2", "detach", terminating[*clusterv1.ManagedCluster]),
			deletes(Clusters, "", "c1"),
			changes(Addons, "c1", contract.AddonName, "begin to delete", terminating[*addonv1beta1.ManagedClusterAddOn]),
			deletes(Addons, "c1", contract.AddonName),
			{Name: "add addon c1", If: lacks(Addons, "c1", contract.AddonName), Do: func(s *State) { s.addAddon("c1") }},
			{Name: "register c1", If: lacks(Clusters, "", "c1"), Do: func(s *State) { s.addCluster("c1", "s1") }},
		},
	}
}

// moving: a cluster changes its set while sets are bound and unbound.
func moving() Scenario {
	return Scenario{
		Name: "moving", Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Pairs: []types.NamespacedName{named("n1", "c1"), named("n2", "c1")},
		Begin: func(s *State) {
			fleet(s, "c1")
			s.addNamespace("n2")
			s.addSet("s2", clusterv1beta2.ExclusiveClusterSetLabel)
			s.bind("n2", "s2")
			s.publish("n1", "c1")
		},
		Changes: []Change{
			changes(Clusters, "", "c1", "move to s2", func(c *clusterv1.ManagedCluster) {
				c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "s2"}
			}),
			{Name: "bind s2 to n1", If: lacks(Bindings, "n1", "s2"), Do: func(s *State) { s.bind("n1", "s2") }},
			deletes(Bindings, "n2", "s2"),
			deletes(Bindings, "n1", "s1"),
			changes(Bindings, "n1", "s1", "withhold", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Labels = map[string]string{contract.LabelPublish: "false"}
			}),
			changes(Bindings, "n1", "s1", "begin to delete", terminating[*clusterv1beta2.ManagedClusterSetBinding]),
		},
	}
}

// choosing: a Placement's decisions change, slice and status one after the other.
func choosing() Scenario {
	return Scenario{
		Name: "choosing", Pairs: pairs("n1", "c1", "c2"), Budget: 4, Tick: 2 * time.Second, Ticks: 2, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			fleet(s, "c1", "c2")
			s.addPlacement("n1", "p1")
			s.place("n1", "p1", "c1")
			s.publish("n1", "c1")
		},
		Changes: []Change{
			{Name: "slice c2", Do: func(s *State) { s.slice("n1", "p1", "c2") }},
			{Name: "slice c1 c2", Do: func(s *State) { s.slice("n1", "p1", "c1", "c2") }},
			{Name: "slice none", Do: func(s *State) { s.slice("n1", "p1") }},
			{Name: "select 0", Do: func(s *State) { s.schedule("n1", "p1", 0) }},
			{Name: "select 2", Do: func(s *State) { s.schedule("n1", "p1", 2) }},
		},
	}
}

// vanishing: Placements come and go, and are replaced.
func vanishing() Scenario {
	return Scenario{
		Name: "vanishing", Pairs: pairs("n1", "c1", "c2"), Budget: 3, Tick: 11 * time.Second, Ticks: 2, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			fleet(s, "c1", "c2")
			s.addPlacement("n1", "p1")
			s.place("n1", "p1", "c1")
			s.publish("n1", "c1")
		},
		Changes: []Change{
			deletes(Placements, "n1", "p1"),
			{
				Name: "delete decisions of p1", If: exists(Decisions, "n1", "p1-decision-0"),
				Do: func(s *State) { s.Delete(Decisions, named("n1", "p1-decision-0")) },
			},
			{Name: "create p1", If: lacks(Placements, "n1", "p1"), Do: func(s *State) { s.addPlacement("n1", "p1") }},
			{Name: "p1 chooses c1", If: exists(Placements, "n1", "p1"), Do: func(s *State) { s.place("n1", "p1", "c1") }},
			changes(Placements, "n1", "p1", "unpublish", func(p *clusterv1beta1.Placement) { p.Labels = nil }),
			changes(Namespaces, "", "n1", "require a Placement in", func(n *metav1.PartialObjectMetadata) {
				n.Annotations = map[string]string{contract.AnnotationRequirePlacement: "true"}
			}),
		},
	}
}

// owners: profiles of others, and ours that others change or delete.
func owners() Scenario {
	return Scenario{
		Name: "owners", Pairs: pairs("n1", "c1", "c2", "c3"), Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 1,
		Begin: func(s *State) {
			fleet(s, "c1", "c2", "c3")
			s.publish("n1", "c1")
			foreign := newProfile(named("n1", "c2"))
			foreign.Spec.ClusterManager.Name, foreign.Labels = "another", nil
			s.Create(Profiles, foreign)
			unmarked := newProfile(named("n1", "c3"))
			unmarked.Labels = nil
			s.Create(Profiles, unmarked)
		},
		Changes: []Change{
			deletes(Profiles, "n1", "c1"),
			deletes(Profiles, "n1", "c2"),
			changes(Profiles, "n1", "c1", "unmark", func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = nil }),
			deletes(Bindings, "n1", "s1"),
			{Name: "bind s1 to n1", If: lacks(Bindings, "n1", "s1"), Do: func(s *State) { s.bind("n1", "s1") }},
		},
	}
}

// doubts: bindings and sets about which nothing is certain.
func doubts() Scenario {
	return Scenario{
		Name: "doubts", Pairs: pairs("n1", "c1"), Budget: 3, Tick: 11 * time.Second, Ticks: 1, Crashes: 1, Losses: 0,
		Begin: func(s *State) {
			fleet(s, "c1")
			s.addSet("all", clusterv1beta2.LabelSelector)
			s.publish("n1", "c1")
		},
		Changes: []Change{
			changes(Bindings, "n1", "s1", "forget the condition of", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Status.Conditions = nil
			}),
			changes(Bindings, "n1", "s1", "unbind", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Status.Conditions = []metav1.Condition{
					{Type: clusterv1beta2.ClusterSetBindingBoundType, Status: metav1.ConditionFalse},
				}
			}),
			deletes(Sets, "", "s1"),
			{Name: "create s1", If: lacks(Sets, "", "s1"), Do: func(s *State) {
				s.addSet("s1", clusterv1beta2.ExclusiveClusterSetLabel)
			}},
			{Name: "bind all to n1", If: lacks(Bindings, "n1", "all"), Do: func(s *State) { s.bind("n1", "all") }},
			changes(Clusters, "", "c1", "take from its set", func(c *clusterv1.ManagedCluster) { c.Labels = nil }),
		},
	}
}
