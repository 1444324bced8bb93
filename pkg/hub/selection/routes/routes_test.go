package routes

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// memory is what a controller remembers.
type memory []types.NamespacedName

func (m memory) All() []types.NamespacedName { return m }

func (m memory) NamespacesOf(cluster string) []string {
	var list []string
	for _, pair := range m {
		if pair.Name == cluster {
			list = append(list, pair.Namespace)
		}
	}
	return list
}

func (m memory) ClustersIn(namespace string) []string {
	var list []string
	for _, pair := range m {
		if pair.Namespace == namespace {
			list = append(list, pair.Name)
		}
	}
	return list
}

// waiting are the pairs that wait for the decisions of Placements.
type waiting map[types.NamespacedName][]types.NamespacedName

func (waiting) Forget(types.NamespacedName)           {}
func (waiting) Unpublished(types.NamespacedName)      {}
func (waiting) Widen(string)                          {}
func (waiting) Chosen(types.NamespacedName, []string) {}
func (waiting) Present(types.NamespacedName)          {}

func (w waiting) TakeAwaiting(placement types.NamespacedName) []types.NamespacedName {
	return w[placement]
}

// routesOver returns routes that read the given objects. Pairs wait for nothing.
func routesOver(objs ...client.Object) Routes {
	b := fake.NewClientBuilder().WithScheme(ocmtest.Scheme()).WithObjects(objs...)
	for _, index := range Indexes {
		b = b.WithIndex(index.Object, index.Name, index.Extract)
	}
	return Routes{
		Reader: b.Build(), Settling: waiting{}, Remembered: memory{},
		IsInstall: func(context.Context, types.NamespacedName) (bool, error) { return false, nil },
	}
}

func found(requests []reconcile.Request) []string {
	var list []string
	for _, request := range requests {
		list = append(list, request.String())
	}
	slices.Sort(list)
	return list
}

// TestRoutes maps objects to pairs on a hub with the exclusive sets s (c1, c2) and t (c3),
// the set prod by label (c1, c3), the set bad whose selector is invalid, and a binding to a
// set that is not there.
func TestRoutes(t *testing.T) {
	hub := func() []client.Object {
		both := ocmtest.InSet("t")
		both["env"] = "prod"
		first := ocmtest.InSet("s")
		first["env"] = "prod"
		publishing := ocmtest.Publishing("view", 0)
		other := publishing.DeepCopy()
		other.Name, other.Labels = "other", nil
		silent := ocmtest.Binding("quiet", "s")
		silent.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
		return []client.Object{
			ocmtest.ClusterWith("c1", first), ocmtest.ClusterWith("c2", ocmtest.InSet("s")), ocmtest.ClusterWith("c3", both),
			ocmtest.ExclusiveSet("s"), ocmtest.ExclusiveSet("t"),
			ocmtest.LabelSet("prod", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}),
			ocmtest.LabelSet("bad", ocmtest.InvalidSelector()),
			ocmtest.Binding("ns", "s"), ocmtest.Binding("nt", "t"), ocmtest.Binding("np", "prod"),
			ocmtest.Binding("nb", "bad"), ocmtest.Binding("ng", "gone"), silent,
			ocmtest.ForeignProfile("old", "c1"), ocmtest.ForeignProfile("ns", "left"),
			publishing, other,
		}
	}
	tests := map[string]struct {
		find func(Routes) []reconcile.Request
		want []string
	}{
		"a cluster: its sets', the invalid set's, and wherever it has a profile or is remembered": {
			find: func(r Routes) []reconcile.Request {
				r.Remembered = memory{{Namespace: "remembered", Name: "c1"}, {Namespace: "remembered", Name: "c2"}}
				return r.pairsForCluster(t.Context(), ocmtest.ClusterWith("c1", ocmtest.InSet("s")))
			},
			want: []string{"nb/c1", "ns/c1", "old/c1", "quiet/c1", "remembered/c1"},
		},
		"a cluster as it was before: the namespaces of its former set": {
			find: func(r Routes) []reconcile.Request {
				return r.pairsForCluster(t.Context(), ocmtest.ClusterWith("c1", ocmtest.InSet("t")))
			},
			want: []string{"nb/c1", "nt/c1", "old/c1"},
		},
		"a cluster labelled with a set that is not there": {
			find: func(r Routes) []reconcile.Request {
				return r.pairsForCluster(t.Context(), ocmtest.ClusterWith("new", ocmtest.InSet("gone")))
			},
			want: []string{"nb/new", "ng/new"},
		},
		"a cluster labelled with a set that selects by other labels: not that set's": {
			find: func(r Routes) []reconcile.Request {
				return r.pairsForCluster(t.Context(), ocmtest.ClusterWith("new", ocmtest.InSet("prod")))
			},
			want: []string{"nb/new"},
		},
		"an addon: like its cluster": {
			find: func(r Routes) []reconcile.Request { return r.pairsForAddon(t.Context(), ocmtest.Addon("c1")) },
			want: []string{"nb/c1", "np/c1", "ns/c1", "old/c1", "quiet/c1"},
		},
		"an addon of no cluster: only the invalid set's": {
			find: func(r Routes) []reconcile.Request { return r.pairsForAddon(t.Context(), ocmtest.Addon("nobody")) },
			want: []string{"nb/nobody"},
		},
		"an exclusive set: its members where it is bound, and the profiles there": {
			find: func(r Routes) []reconcile.Request { return r.pairsForSet(t.Context(), ocmtest.ExclusiveSet("s")) },
			want: []string{"ns/c1", "ns/c2", "ns/left", "quiet/c1", "quiet/c2"},
		},
		"a set by label": {
			find: func(r Routes) []reconcile.Request {
				return r.pairsForSet(t.Context(),
					ocmtest.LabelSet("prod", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}))
			},
			want: []string{"np/c1", "np/c3"},
		},
		"an invalid set: every cluster, where it is bound": {
			find: func(r Routes) []reconcile.Request {
				return r.pairsForSet(t.Context(), ocmtest.LabelSet("bad", ocmtest.InvalidSelector()))
			},
			want: []string{"nb/c1", "nb/c2", "nb/c3"},
		},
		"a binding": {
			find: func(r Routes) []reconcile.Request { return r.PairsForBinding(t.Context(), ocmtest.Binding("ns", "s")) },
			want: []string{"ns/c1", "ns/c2", "ns/left"},
		},
		"a binding to a set that is not there: the profiles that are": {
			find: func(r Routes) []reconcile.Request {
				return r.PairsForBinding(t.Context(), ocmtest.Binding("ns", "gone"))
			},
			want: []string{"ns/left"},
		},
		"a Namespace: all of its pairs": {
			find: func(r Routes) []reconcile.Request {
				namespace := kube.Partial(kube.NamespaceKind)
				namespace.Name = "ns"
				return r.pairsForNamespace(t.Context(), namespace)
			},
			want: []string{"ns/c1", "ns/c2", "ns/left"},
		},
		"a Placement that begins to publish: all of its namespace": {
			find: func(r Routes) []reconcile.Request {
				p := ocmtest.Publishing("view", 0)
				p.Namespace = "ns"
				return r.PairsForPlacement(t.Context(), p)
			},
			want: []string{"ns/c1", "ns/c2", "ns/left"},
		},
		"a Placement's status: nothing, without waiting pairs": {
			find: func(r Routes) []reconcile.Request {
				return r.PairsAwaiting(t.Context(), ocmtest.Publishing("view", 0))
			},
		},
		"a Placement's status: the pairs that wait": {
			find: func(r Routes) []reconcile.Request {
				r.Settling = waiting{{Namespace: "ns", Name: "view"}: {{Namespace: "ns", Name: "c2"}}}
				return r.PairsAwaiting(t.Context(), ocmtest.Publishing("view", 0))
			},
			want: []string{"ns/c2"},
		},
		"a slice: the clusters it names": {
			find: func(r Routes) []reconcile.Request {
				return r.PairsForDecision(t.Context(), ocmtest.Slice("view-1", "view", "c1", "c9"))
			},
			want: []string{"ns/c1", "ns/c9"},
		},
		"a slice, and a pair waits: this pair, too": {
			find: func(r Routes) []reconcile.Request {
				r.Settling = waiting{{Namespace: "ns", Name: "view"}: {{Namespace: "ns", Name: "c2"}}}
				return r.PairsForDecision(t.Context(), ocmtest.Slice("view-1", "view", "c9"))
			},
			want: []string{"ns/c2", "ns/c9"},
		},
		"a slice of a Placement that does not publish: nothing": {
			find: func(r Routes) []reconcile.Request {
				return r.PairsForDecision(t.Context(), ocmtest.Slice("other-1", "other", "c1"))
			},
		},
		"a slice of no Placement: nothing": {
			find: func(r Routes) []reconcile.Request {
				return r.PairsForDecision(t.Context(), ocmtest.Slice("x", "", "c1"))
			},
		},
		"what concerns all: all": {
			find: func(r Routes) []reconcile.Request {
				r.Remembered = memory{{Namespace: "remembered", Name: "c1"}}
				return r.AllPairs(t.Context(), nil)
			},
			want: []string{
				"nb/c1", "nb/c2", "nb/c3", "np/c1", "np/c3", "ns/c1", "ns/c2", "ns/left",
				"nt/c3", "old/c1", "quiet/c1", "quiet/c2", "remembered/c1"},
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
		got, err := routesOver(hub()...).ExpectedNamespaces(t.Context(), "c1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"nb", "np", "ns", "old"}, got); diff != "" {
			t.Errorf("namespaces (-want +got):\n%s", diff)
		}
	})
	for name, test := range map[string]struct {
		cluster string
		want    []string
	}{
		"the profiles of a cluster":   {cluster: "c1", want: []string{"old/c1"}},
		"the profiles of no cluster":  {cluster: "c2"},
		"the profiles of all of them": {want: []string{"ns/left", "old/c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := routesOver(hub()...).PairsWithProfile(t.Context(), test.cluster)
			if err != nil {
				t.Fatal(err)
			}
			names := make([]string, 0, len(got))
			for _, pair := range got {
				names = append(names, pair.String())
			}
			slices.Sort(names)
			if diff := cmp.Diff(test.want, names, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("pairs (-want +got):\n%s", diff)
			}
		})
	}
}
