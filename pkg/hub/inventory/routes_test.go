package inventory

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// routesOver returns routes that read the given objects.
func routesOver(objs ...client.Object) routes {
	b := fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(objs...)
	for _, index := range indexes {
		b = b.WithIndex(index.object, index.name, index.extract)
	}
	return routes{reader: b.Build(), outcomes: newOutcomes(), settling: newSettling()}
}

func found(requests []reconcile.Request) []string {
	var list []string
	for _, request := range requests {
		list = append(list, request.String())
	}
	slices.Sort(list)
	return list
}

func aCluster(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func aBinding(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	b := bound(set, nil).binding
	b.Namespace = namespace
	return b
}

func aProfile(namespace, name string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestRoutes goes from objects to pairs on a hub with the exclusive sets s
// (c1, c2) and t (c3), the set prod by label (c1, c3), the set bad whose selector
// is invalid, and a binding to a set that is not there.
func TestRoutes(t *testing.T) {
	hub := func() []client.Object {
		both := inSet("t")
		both["env"] = "prod"
		first := inSet("s")
		first["env"] = "prod"
		publishing := chooser("view", false, 0).placement
		other := publishing.DeepCopy()
		other.Name, other.Labels = "other", nil
		silent := aBinding("quiet", "s")
		silent.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
		return []client.Object{
			aCluster("c1", first), aCluster("c2", inSet("s")), aCluster("c3", both),
			exclusiveSet("s"), exclusiveSet("t"),
			labelSet("prod", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}),
			labelSet("bad", invalidSelector),
			aBinding("ns", "s"), aBinding("nt", "t"), aBinding("np", "prod"), aBinding("nb", "bad"), aBinding("ng", "gone"), silent,
			aProfile("old", "c1"), aProfile("ns", "left"),
			publishing, other,
		}
	}
	tests := map[string]struct {
		find func(routes) []reconcile.Request
		want []string
	}{
		"a cluster: its sets', the invalid set's, and wherever it has a profile or an outcome": {
			find: func(r routes) []reconcile.Request {
				r.outcomes.set(types.NamespacedName{Namespace: "remembered", Name: "c1"}, outcome{})
				r.outcomes.set(types.NamespacedName{Namespace: "remembered", Name: "c2"}, outcome{})
				return r.profilesForCluster(t.Context(), aCluster("c1", inSet("s")))
			},
			want: []string{"nb/c1", "ns/c1", "old/c1", "quiet/c1", "remembered/c1"},
		},
		"a cluster as it was before: the namespaces of its former set": {
			find: func(r routes) []reconcile.Request {
				return r.profilesForCluster(t.Context(), aCluster("c1", inSet("t")))
			},
			want: []string{"nb/c1", "nt/c1", "old/c1"},
		},
		"a cluster labelled with a set that is not there": {
			find: func(r routes) []reconcile.Request {
				return r.profilesForCluster(t.Context(), aCluster("new", inSet("gone")))
			},
			want: []string{"nb/new", "ng/new"},
		},
		"a cluster labelled with a set that selects by other labels: not that set's": {
			find: func(r routes) []reconcile.Request {
				return r.profilesForCluster(t.Context(), aCluster("new", inSet("prod")))
			},
			want: []string{"nb/new"},
		},
		"an addon: like its cluster": {
			find: func(r routes) []reconcile.Request { return r.profilesForAddon(t.Context(), addon("c1")) },
			want: []string{"nb/c1", "np/c1", "ns/c1", "old/c1", "quiet/c1"},
		},
		"an addon of no cluster: nothing but the invalid set's": {
			find: func(r routes) []reconcile.Request { return r.profilesForAddon(t.Context(), addon("nobody")) },
			want: []string{"nb/nobody"},
		},
		"an exclusive set: its members where it is bound, and the profiles there": {
			find: func(r routes) []reconcile.Request { return r.profilesForSet(t.Context(), exclusiveSet("s")) },
			want: []string{"ns/c1", "ns/c2", "ns/left", "quiet/c1", "quiet/c2"},
		},
		"a set by label": {
			find: func(r routes) []reconcile.Request {
				return r.profilesForSet(t.Context(), labelSet("prod", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}))
			},
			want: []string{"np/c1", "np/c3"},
		},
		"an invalid set: every cluster, where it is bound": {
			find: func(r routes) []reconcile.Request {
				return r.profilesForSet(t.Context(), labelSet("bad", invalidSelector))
			},
			want: []string{"nb/c1", "nb/c2", "nb/c3"},
		},
		"a binding": {
			find: func(r routes) []reconcile.Request { return r.profilesForBinding(t.Context(), aBinding("ns", "s")) },
			want: []string{"ns/c1", "ns/c2", "ns/left"},
		},
		"a binding to a set that is not there: the profiles that are": {
			find: func(r routes) []reconcile.Request { return r.profilesForBinding(t.Context(), aBinding("ns", "gone")) },
			want: []string{"ns/left"},
		},
		"a Namespace: all of its pairs": {
			find: func(r routes) []reconcile.Request {
				namespace := partial(namespaceKind)
				namespace.Name = "ns"
				return r.profilesForNamespace(t.Context(), namespace)
			},
			want: []string{"ns/c1", "ns/c2", "ns/left"},
		},
		"a Placement that begins to publish: all of its namespace": {
			find: func(r routes) []reconcile.Request {
				p := chooser("view", false, 0).placement
				p.Namespace = "ns"
				return r.profilesForPlacement(t.Context(), p)
			},
			want: []string{"ns/c1", "ns/c2", "ns/left"},
		},
		"a Placement's status: nothing, if nobody waits": {
			find: func(r routes) []reconcile.Request {
				return r.profilesAwaiting(t.Context(), chooser("view", false, 0).placement)
			},
		},
		"a Placement's status: all of its namespace, if somebody waits": {
			find: func(r routes) []reconcile.Request {
				r.settling.await(types.NamespacedName{Namespace: "ns", Name: "view"})
				return r.profilesAwaiting(t.Context(), chooser("view", false, 0).placement)
			},
			want: []string{"ns/c1", "ns/c2", "ns/left"},
		},
		"a slice: the clusters it names": {
			find: func(r routes) []reconcile.Request {
				return r.profilesForDecision(t.Context(), slice("view-1", "view", "c1", "c9"))
			},
			want: []string{"ns/c1", "ns/c9"},
		},
		"a slice, and somebody waits: all of its namespace too": {
			find: func(r routes) []reconcile.Request {
				r.settling.await(types.NamespacedName{Namespace: "ns", Name: "view"})
				return r.profilesForDecision(t.Context(), slice("view-1", "view", "c9"))
			},
			want: []string{"ns/c1", "ns/c2", "ns/c9", "ns/left"},
		},
		"a slice of a Placement that does not publish: nothing": {
			find: func(r routes) []reconcile.Request {
				return r.profilesForDecision(t.Context(), slice("other-1", "other", "c1"))
			},
		},
		"a slice of no Placement: nothing": {
			find: func(r routes) []reconcile.Request { return r.profilesForDecision(t.Context(), slice("x", "", "c1")) },
		},
		"what concerns all: all": {
			find: func(r routes) []reconcile.Request {
				r.outcomes.set(types.NamespacedName{Namespace: "remembered", Name: "c1"}, outcome{})
				return r.allProfiles(t.Context(), nil)
			},
			want: []string{"nb/c1", "nb/c2", "nb/c3", "np/c1", "np/c3", "ns/c1", "ns/c2", "ns/left", "nt/c3", "old/c1", "quiet/c1", "quiet/c2", "remembered/c1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, found(test.find(routesOver(hub()...))), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("pairs (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("where a cluster's profile is expected: not where the binding does not publish", func(t *testing.T) {
		got, err := routesOver(hub()...).expectedNamespaces(t.Context(), "c1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"nb", "np", "ns", "old"}, got); diff != "" {
			t.Errorf("namespaces (-want +got):\n%s", diff)
		}
	})
}
