package inventory

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// restoration is a hub whose CRDs are deleted and recreated while the inventory
// runs.
type restoration struct {
	*world
	server      *apitest.Server
	wire        *apitest.Wire
	definitions *watch.Definitions
	time        *apitest.Clock
	ahead       time.Duration
	claims      int
	c, other    *clusterv1.ManagedCluster
	all, one    string // namespaces that hold both clusters, and c alone
}

func newRestoration(t *testing.T) *restoration {
	t.Helper()
	server := restoredHub
	r := &restoration{world: newWorld(t, server.Config(t)), server: server, wire: &apitest.Wire{}, time: &apitest.Clock{}}
	t.Cleanup(func() { clearHub(r.world) })
	r.later() // than the CRDs that an earlier test has recreated
	set := r.ExclusiveSet("set")
	r.all, r.one = r.Namespace("all", nil), r.Namespace("one", nil)
	r.Bind(r.all, set.Name)
	r.Bind(r.one, set.Name)
	r.c = r.Cluster("c", ocmtest.InSet(set.Name), ocmtest.Claim("x", "0"))
	r.other = r.Cluster("other", ocmtest.InSet(set.Name))
	r.Placement(r.one, "view", r.c.Name)
	startWith(t, r.wire.Tap(asManager(t, server, r.world)), cacheOptions(), func(mgr manager.Manager) Options {
		r.definitions = followDefinitions(t, mgr, r.time)
		rule := selection.New(mgr.GetCache(), mgr.GetAPIReader(), r.definitions, r.time)
		return Options{Rule: rule, Guard: allowed, Clock: r.time}
	})
	r.exists(r.all, r.other.Name, true)
	r.follows()
	return r
}

// later lets restored objects count.
func (r *restoration) later() { r.elapse(watch.RestoreTime) }

func (r *restoration) elapse(by time.Duration) {
	r.ahead += by
	r.time.Set(r.ahead)
}

// restored restores objects, and waits until the manager knows that some were.
func (r *restoration) restored(restore func()) {
	r.T.Helper()
	began := r.time.Now()
	restore()
	r.Eventually("the manager sees what is restored", func() string {
		if last := r.definitions.LastAdded(); last.Before(began) {
			return fmt.Sprintf("added last at %s, want after %s", last, began)
		}
		return ""
	})
}

// follows waits until the profiles of the cluster c show a claim that was edited just now,
// so that they have been reconciled after everything that happened before.
func (r *restoration) follows() {
	r.T.Helper()
	r.claims++
	want := fmt.Sprint(r.claims)
	r.MustGet(r.c)
	apitest.EditStatus(r, r.c, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("x", want)}
	})
	r.Eventually("the profiles follow", func() string {
		for _, namespace := range []string{r.all, r.one} {
			profile := r.Profile(namespace, r.c.Name)
			if profile == nil {
				return "no profile in " + namespace
			}
			if len(profile.Status.Properties) == 0 || profile.Status.Properties[0].Value != want {
				return fmt.Sprintf("properties in %s: %v", namespace, profile.Status.Properties)
			}
		}
		return ""
	})
}

func (r *restoration) uids() map[string]types.UID {
	r.T.Helper()
	found := map[string]types.UID{}
	for _, namespace := range []string{r.all, r.one} {
		for _, cluster := range []string{r.c.Name, r.other.Name} {
			if profile := r.Profile(namespace, cluster); profile != nil {
				found[namespace+"/"+cluster] = profile.UID
			}
		}
	}
	return found
}

// createdOrDeleted returns the requests that created or deleted profiles.
func (r *restoration) createdOrDeleted() []string {
	var list []string
	for _, call := range r.wire.Writes("clusterprofiles") {
		if call.Method != http.MethodPatch {
			list = append(list, call.String())
		}
	}
	return list
}

// TestRecreatedSourceDeletesNothing deletes the CRDs that profiles are
// computed from, one after the other, and restores each with its objects.
func TestRecreatedSourceDeletesNothing(t *testing.T) {
	r := newRestoration(t)
	before := r.uids()
	if len(before) != 3 {
		t.Fatalf("profiles: %v", before)
	}
	for crd, list := range map[string]client.ObjectList{
		"managedclusters.cluster.open-cluster-management.io":           &clusterv1.ManagedClusterList{},
		"managedclustersets.cluster.open-cluster-management.io":        &clusterv1beta2.ManagedClusterSetList{},
		"managedclustersetbindings.cluster.open-cluster-management.io": &clusterv1beta2.ManagedClusterSetBindingList{},
		"placements.cluster.open-cluster-management.io":                &clusterv1beta1.PlacementList{},
		"placementdecisions.cluster.open-cluster-management.io":        &clusterv1beta1.PlacementDecisionList{},
		"managedclusteraddons.addon.open-cluster-management.io":        &addonv1beta1.ManagedClusterAddOnList{},
	} {
		t.Run(crd, func(t *testing.T) {
			whole := r.world
			r.world = whole.in(t)
			defer func() { r.world = whole }()
			r.later()
			r.wire.Reset()
			restore := r.Backup(list)
			r.server.Reinstall(r.World, crd, apitest.Hub())
			restore()
			r.follows()
			if got := r.createdOrDeleted(); len(got) > 0 {
				t.Errorf("created or deleted: %v", got)
			}
			if diff := cmp.Diff(before, r.uids()); diff != "" {
				t.Errorf("profiles (-before +after):\n%s", diff)
			}
		})
	}
}

// TestASlowRestoreDeletesNothing restores one kind for minutes before the other.
func TestASlowRestoreDeletesNothing(t *testing.T) {
	r := newRestoration(t)
	before := r.uids()
	clusters := r.Backup(&clusterv1.ManagedClusterList{})
	bindings := r.Backup(&clusterv1beta2.ManagedClusterSetBindingList{})
	r.wire.Reset()
	r.server.Reinstall(r.World, "managedclustersetbindings.cluster.open-cluster-management.io", apitest.Hub())
	r.server.Reinstall(r.World, "managedclusters.cluster.open-cluster-management.io", apitest.Hub())
	r.restored(clusters)
	for i := range 5 {
		r.elapse(watch.RestoreTime / 2)
		r.follows()
		r.restored(func() { r.Cluster(fmt.Sprintf("next-%d-", i), nil) })
	}
	r.restored(bindings)
	r.later()
	r.follows()
	if got := r.createdOrDeleted(); len(got) > 0 {
		t.Errorf("created or deleted: %v", got)
	}
	if diff := cmp.Diff(before, r.uids()); diff != "" {
		t.Errorf("profiles (-before +after):\n%s", diff)
	}
}

// TestUnrestoredObjectsAreRemoved: a minute after a CRD was recreated, missing objects
// count; and a deletion of another kind counts at once.
func TestUnrestoredObjectsAreRemoved(t *testing.T) {
	r := newRestoration(t)
	const crd = "managedclustersetbindings.cluster.open-cluster-management.io"
	r.wire.Reset()
	r.server.Reinstall(r.World, crd, apitest.Hub())
	r.follows()
	if got := r.createdOrDeleted(); len(got) > 0 {
		t.Errorf("created or deleted before the minute was over: %v", got)
	}
	r.MustDelete(ocmtest.Addon(r.other.Name))
	r.exists(r.all, r.other.Name, false)
	if got := len(r.uids()); got != 2 {
		t.Errorf("%d profiles, want the 2 of the cluster that keeps its addon", got)
	}
	r.later()
	apitest.Edit(r, r.c, func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "test" })
	r.exists(r.all, r.c.Name, false)
	r.exists(r.one, r.c.Name, false)
}
