package inventory

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

const memberIDLabel = "multicluster.x-k8s.io/inventory-member-id"

// A klusterlet may label its own ManagedCluster. None gets the identity of another cluster.
func TestMemberIDsAreNotStolen(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set, ns, other := w.ExclusiveSet("set"), w.Namespace("team", nil), w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	w.Bind(other, set.Name)
	a, b := w.Cluster("a", ocmtest.InSet(set.Name)), w.Cluster("b", ocmtest.InSet(set.Name))
	cfg := asManager(t, wiredHub, w)
	opts := Options{Guard: allowed}
	stop := startManager(t, cfg, opts)
	has := func(c *clusterv1.ManagedCluster, want string) {
		t.Helper()
		w.Eventually(c.Name+" has the member id "+want, func() string {
			for _, namespace := range []string{ns, other} {
				if profile := w.Profile(namespace, c.Name); profile == nil || profile.Labels[memberIDLabel] != want {
					return fmt.Sprintf("in %s it is %+v", namespace, profile)
				}
			}
			return ""
		})
	}
	markers := 0
	arrives := func() { // what happened before is seen when a new cluster is
		t.Helper()
		markers++
		marker := w.Cluster(fmt.Sprintf("marker-%d-", markers), ocmtest.InSet(set.Name))
		w.whole(ns, marker.Name)
	}
	asks := func(c *clusterv1.ManagedCluster, id string) {
		t.Helper()
		apitest.Edit(w, c, func(c *clusterv1.ManagedCluster) {
			c.Labels[memberIDLabel] = id
			if id == "" {
				delete(c.Labels, memberIDLabel)
			}
		})
	}
	refused := func(c *clusterv1.ManagedCluster, id string) {
		t.Helper()
		w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "False", "InvalidProperties",
			fmt.Sprintf(`Left out: the member id %q, which another cluster has.`, id))
	}
	has(a, a.Name)
	has(b, b.Name)

	t.Log("an id of its own")
	asks(a, "id-1")
	has(a, "id-1")
	w.synced(a.Name)

	t.Log("the id that another cluster has")
	asks(b, "id-1")
	refused(b, "id-1")
	has(b, b.Name)
	has(a, "id-1")
	w.Eventually("an event on the profile says so", func() string {
		list := &eventsv1.EventList{}
		apitest.Must(t, w.List(t.Context(), list, client.InNamespace(ns)))
		for _, event := range list.Items {
			if event.Reason == "MemberIDRefused" && event.Regarding.Name == b.Name && strings.Contains(event.Note, `"id-1"`) {
				return ""
			}
		}
		return fmt.Sprintf("there is none among %d", len(list.Items))
	})

	t.Log("the same, after a restart")
	stop()
	stop = startManager(t, cfg, opts)
	arrives()
	has(a, "id-1")
	has(b, b.Name)

	t.Log("the name of another cluster")
	asks(b, a.Name)
	refused(b, a.Name)
	has(b, b.Name)
	has(a, "id-1")

	t.Log("two clusters swap their ids")
	asks(b, "id-2")
	has(b, "id-2")
	asks(a, "id-2")
	refused(a, "id-2")
	asks(b, "id-1")
	has(b, "id-1")
	has(a, "id-2")
	w.synced(a.Name)
	w.synced(b.Name)

	t.Log("a cluster registers with the name that is another's id, and is accepted")
	pending := &clusterv1.ManagedCluster{}
	pending.Name, pending.Labels = "id-2", ocmtest.InSet(set.Name)
	w.MustCreate(pending, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pending.Name}})
	arrives()
	has(a, "id-2")
	apitest.Edit(w, pending, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	w.Enable(pending.Name)
	has(pending, "")
	has(a, "id-2")
	refused(pending, "id-2")
	asks(a, "")
	has(a, a.Name)
	has(pending, "id-2")

	t.Log("the name of a cluster that is not accepted yet")
	waiting := &clusterv1.ManagedCluster{}
	waiting.Name = w.Name("waiting")
	w.MustCreate(waiting)
	arrives()
	asks(b, waiting.Name)
	refused(b, waiting.Name)
	has(b, b.Name)
	w.MustDelete(waiting)
	has(b, waiting.Name)

	t.Log("what is no label value is refused by the API server")
	err := w.Patch(t.Context(), b.DeepCopy(), client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, memberIDLabel, strings.Repeat("x", 64))))
	if err == nil {
		t.Error("a label of 64 bytes was accepted")
	}
	stop()
}

// A ManagedCluster may be missing only for a moment. As long as a profile has its id, no other
// cluster gets that.
func TestAProfileHoldsTheIDOfAMissingCluster(t *testing.T) {
	s := newStepper(t, mapHub)
	s.mustStep(post, patchStatus)
	s.settled()
	asks := s.Cluster("asks", map[string]string{memberIDLabel: s.c.Name})
	s.MustDelete(s.c)
	s.EventuallyGone(s.c)
	for _, want := range []profiles.MemberID{{ID: asks.Name, Refused: s.c.Name}, {ID: s.c.Name}} {
		got, _, err := s.r.members.of(t.Context(), profiles.Observed{
			Observation: selection.Observation{Cluster: asks}, Pair: types.NamespacedName{Namespace: s.ns, Name: asks.Name},
		}, false)
		if err != nil || got != want {
			t.Errorf("the cluster that asks for it has %+v, want %+v (%v)", got, want, err)
		}
		if profile := s.mine(); profile != nil {
			s.MustDelete(profile)
			s.EventuallyGone(profile)
		}
	}
}

// A tenant can create a profile with any id, and hold it by a finalizer when the manager deletes it.
func TestAProfileThatIsBeingDeletedHoldsNoID(t *testing.T) {
	s := newStepper(t, mapHub)
	held := ocmtest.OurProfile(s.ns, s.Name("squatter"))
	held.Labels[memberIDLabel], held.Finalizers = s.c.Name, []string{"example.com/hold"}
	s.MustCreate(held)
	t.Cleanup(func() { s.in(t).MustMerge(held, `{"metadata":{"finalizers":null}}`) })
	for _, want := range []profiles.MemberID{{ID: s.c.Name}, {ID: s.c.Name}} {
		s.MustDelete(held)
		got, _, err := s.r.members.of(t.Context(), profiles.Observed{
			Observation: selection.Observation{Cluster: s.c}, Pair: s.pair,
		}, false)
		if err != nil || got != want {
			t.Errorf("the cluster has %+v, want %+v (%v)", got, want, err)
		}
	}
}

// While clusters swap their ids again and again, no two profiles of a namespace have the same.
func TestSwappedMemberIDsAreNeverSharedByTwoProfiles(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set := w.ExclusiveSet("set")
	namespaces := []string{w.Namespace("team", nil), w.Namespace("team", nil)}
	for _, ns := range namespaces {
		w.Bind(ns, set.Name)
	}
	a, b := w.Cluster("a", ocmtest.InSet(set.Name)), w.Cluster("b", ocmtest.InSet(set.Name))
	startManager(t, asManager(t, wiredHub, w), Options{Guard: allowed})
	w.synced(a.Name)
	w.synced(b.Name)

	c, err := client.NewWithWatch(wiredHub.Config(t), client.Options{Scheme: ocmtest.Scheme()})
	apitest.Must(t, err)
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	apitest.Must(t, c.List(t.Context(), profiles))
	watch, err := c.Watch(t.Context(), &inventoryv1alpha1.ClusterProfileList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: profiles.ResourceVersion},
	})
	apitest.Must(t, err)
	ids := map[string]map[string]string{} // by namespace and cluster
	shared := make(chan string, 1)
	go func() {
		defer close(shared)
		for event := range watch.ResultChan() {
			profile, ok := event.Object.(*inventoryv1alpha1.ClusterProfile)
			if !ok {
				continue
			}
			if ids[profile.Namespace] == nil {
				ids[profile.Namespace] = map[string]string{}
			}
			id := profile.Labels[memberIDLabel]
			ids[profile.Namespace][profile.Name] = id
			for name, other := range ids[profile.Namespace] {
				if id != "" && other == id && name != profile.Name {
					select {
					case shared <- fmt.Sprintf("%s and %s in %s have %q", name, profile.Name, profile.Namespace, id):
					default:
					}
				}
			}
		}
	}()
	const swaps = 30
	for n := range swaps {
		for m, cluster := range []*clusterv1.ManagedCluster{a, b} {
			w.MustMerge(cluster, fmt.Sprintf(`{"metadata":{"labels":{%q:"id-%d"}}}`, memberIDLabel, (n+m)%2))
		}
	}
	for m, cluster := range []*clusterv1.ManagedCluster{a, b} {
		want := fmt.Sprintf("id-%d", (swaps-1+m)%2)
		w.Eventually(cluster.Name+" has the last id", func() string {
			for _, ns := range namespaces {
				if got := w.Profile(ns, cluster.Name).Labels[memberIDLabel]; got != want {
					return fmt.Sprintf("in %s it has %q, want %q", ns, got, want)
				}
			}
			return ""
		})
		w.synced(cluster.Name)
	}
	watch.Stop()
	for problem := range shared {
		t.Error(problem)
	}
}
