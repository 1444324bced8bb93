package inventory

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// memberCache is a cache of clusters and profiles that counts what is read of it.
type memberCache struct {
	clusters map[string]*clusterv1.ManagedCluster
	profiles map[types.NamespacedName]*inventoryv1alpha1.ClusterProfile
	indexes  map[string]client.IndexerFunc
	read     int // objects
}

func (c *memberCache) IndexField(_ context.Context, _ client.Object, name string, extract client.IndexerFunc) error {
	c.indexes[name] = extract
	return nil
}

func (*memberCache) GetInformer(
	context.Context, client.Object, ...cache.InformerGetOption,
) (cache.Informer, error) {
	return apitest.SyncedInformer{}, nil
}

func (c *memberCache) Get(_ context.Context, key types.NamespacedName, into client.Object, _ ...client.GetOption) error {
	c.read++
	if cluster, isCluster := into.(*clusterv1.ManagedCluster); isCluster && c.clusters[key.Name] != nil {
		*cluster = *c.clusters[key.Name]
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *memberCache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	by := (&client.ListOptions{}).ApplyOptions(opts).FieldSelector
	if by == nil {
		return nil
	}
	want := by.Requirements()[0]
	has := func(object client.Object) bool { return slices.Contains(c.indexes[want.Field](object), want.Value) }
	switch list := list.(type) {
	case *clusterv1.ManagedClusterList:
		for _, cluster := range c.clusters {
			if has(cluster) {
				list.Items = append(list.Items, *cluster)
			}
		}
		c.read += len(list.Items)
	case *inventoryv1alpha1.ClusterProfileList:
		for _, profile := range c.profiles {
			if has(profile) {
				list.Items = append(list.Items, *profile)
			}
		}
		c.read += len(list.Items)
	}
	return nil
}

// ask adds an accepted cluster whose label asks for an id, or changes that.
func (c *memberCache) ask(name, id string) {
	c.clusters[name] = &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{memberIDLabel: id}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
}

// show makes the profile of a pair have an id; none if that is empty.
func (c *memberCache) show(pair types.NamespacedName, id string) {
	if delete(c.profiles, pair); id != "" {
		c.profiles[pair] = ocmtest.OurProfile(pair.Namespace, pair.Name)
		c.profiles[pair].Labels[memberIDLabel] = id
	}
}

// observe is what is known of a pair.
func (c *memberCache) observe(pair types.NamespacedName) profiles.Observed {
	return profiles.Observed{
		Observation: selection.Observation{Cluster: c.clusters[pair.Name], Profile: c.profiles[pair]}, Pair: pair,
	}
}

func newMemberCache(t *testing.T) (*memberCache, *members) {
	t.Helper()
	c := &memberCache{
		clusters: map[string]*clusterv1.ManagedCluster{}, indexes: map[string]client.IndexerFunc{},
		profiles: map[types.NamespacedName]*inventoryv1alpha1.ClusterProfile{},
	}
	rule := selection.New(c, c, watch.NewDefinitions(c, clock.RealClock{}), clock.RealClock{})
	apitest.Must(t, rule.Prepare(t.Context()))
	c.read = 0
	return c, newMembers(rule)
}

// A label that thousands of clusters have costs each of their pairs no more than if it were few,
// also when the holder gives it up.
func TestAMemberIDThatThousandsAskFor(t *testing.T) {
	c, m := newMemberCache(t)
	const clusters, namespaces = 300, 3
	for n := range clusters {
		name := fmt.Sprintf("c-%04d", n)
		c.ask(name, "wanted")
		c.clusters[name].CreationTimestamp = metav1.NewTime(time.Unix(int64(n), 0))
	}
	decide := func(holder string) {
		t.Helper()
		c.read = 0
		for n := range clusters {
			name := fmt.Sprintf("c-%04d", n)
			for ns := range namespaces {
				pair := types.NamespacedName{Namespace: fmt.Sprint("team-", ns), Name: name}
				got, _, err := m.of(t.Context(), c.observe(pair), true)
				want := profiles.MemberID{ID: name, Refused: "wanted"}
				switch {
				case name == holder:
					want = profiles.MemberID{ID: "wanted"}
				case c.clusters[name].Labels[memberIDLabel] == "":
					want = profiles.MemberID{ID: name}
				}
				if err != nil || got != want {
					t.Fatalf("%s has %+v, want %+v (%v)", pair, got, want, err)
				}
				c.show(pair, got.ID)
			}
		}
		if most := 2 * clusters * namespaces; c.read > most {
			t.Errorf("%d objects were read for %d pairs, want at most %d", c.read, clusters*namespaces, most)
		}
	}
	decide("c-0000")
	decide("c-0000")
	c.ask("c-0000", "")
	decide("c-0001")
	decide("c-0001")
}

// No other cluster gets an id as long as a profile may have it: also one that this process was
// about to write when its cluster gave the id up.
func TestAMemberIDIsFreeOnceNoProfileMayHaveIt(t *testing.T) {
	a, alsoA := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "other", Name: "a"}
	b := types.NamespacedName{Namespace: "ns", Name: "b"}
	begin := func(t *testing.T) (*memberCache, func(types.NamespacedName, profiles.MemberID, string)) {
		t.Helper()
		c, m := newMemberCache(t)
		has := func(pair types.NamespacedName, want profiles.MemberID, wantFreed string) {
			t.Helper()
			got, freed, err := m.of(t.Context(), c.observe(pair), true)
			if err != nil || got != want || freed != wantFreed {
				t.Errorf("%s has %+v and freed %q, want %+v and %q (%v)", pair, got, freed, want, wantFreed, err)
			}
		}
		c.ask("a", "id")
		has(a, profiles.MemberID{ID: "id"}, "")
		c.ask("b", "id")
		has(b, profiles.MemberID{ID: "b", Refused: "id"}, "")
		c.ask("a", "")
		has(b, profiles.MemberID{ID: "b", Refused: "id"}, "") // the write of a's profile is under way
		return c, has
	}
	t.Run("the profile shows it, and then another", func(t *testing.T) {
		c, has := begin(t)
		c.show(a, "id")
		has(b, profiles.MemberID{ID: "b", Refused: "id"}, "")
		has(a, profiles.MemberID{ID: "a"}, "")
		has(b, profiles.MemberID{ID: "b", Refused: "id"}, "")
		c.show(a, "a")
		has(b, profiles.MemberID{ID: "id"}, "b")
	})
	t.Run("the write failed", func(t *testing.T) {
		_, has := begin(t)
		has(a, profiles.MemberID{ID: "a"}, "id")
		has(b, profiles.MemberID{ID: "id"}, "b")
	})
	t.Run("the cluster is gone before the write was seen", func(t *testing.T) {
		c, has := begin(t)
		delete(c.clusters, "a")
		has(b, profiles.MemberID{ID: "b", Refused: "id"}, "")
		has(a, profiles.MemberID{}, "id")
		has(b, profiles.MemberID{ID: "id"}, "b")
	})
	t.Run("another namespace still has it", func(t *testing.T) {
		c, has := begin(t)
		c.ask("a", "id")
		has(alsoA, profiles.MemberID{ID: "id"}, "")
		c.ask("a", "")
		c.show(a, "id")
		has(a, profiles.MemberID{ID: "a"}, "")
		c.show(a, "a")
		has(b, profiles.MemberID{ID: "b", Refused: "id"}, "")
		c.show(alsoA, "id")
		has(alsoA, profiles.MemberID{ID: "a"}, "")
		has(b, profiles.MemberID{ID: "b", Refused: "id"}, "")
		c.show(alsoA, "a")
		has(b, profiles.MemberID{ID: "id"}, "b")
	})
}

// Nor does one get an id that is about to be written for a cluster that had given it up when that
// was decided: the cluster was observed before.
func TestAMemberIDOfAClusterObservedBeforeIsNotGivenTwice(t *testing.T) {
	a, b := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	c, m := newMemberCache(t)
	has := func(o profiles.Observed, want profiles.MemberID, wantFreed string) {
		t.Helper()
		got, freed, err := m.of(t.Context(), o, true)
		if err != nil || got != want || freed != wantFreed {
			t.Errorf("%s has %+v and freed %q, want %+v and %q (%v)", o.Pair, got, freed, want, wantFreed, err)
		}
	}
	c.ask("a", "id")
	before := c.observe(a)
	c.ask("a", "")
	has(before, profiles.MemberID{ID: "id"}, "")
	c.ask("b", "id")
	has(c.observe(b), profiles.MemberID{ID: "b", Refused: "id"}, "")
	c.show(a, "id")
	has(c.observe(a), profiles.MemberID{ID: "a"}, "")
	has(c.observe(b), profiles.MemberID{ID: "b", Refused: "id"}, "")
	c.show(a, "a")
	has(c.observe(b), profiles.MemberID{ID: "id"}, "b")
}
