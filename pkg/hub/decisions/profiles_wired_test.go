package decisions

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// startWithProfiles runs the decisions with the inventory, as the manager does, until
// w.stop is called or the test ends. forbidden keeps the inventory from writing profiles.
func (w *world) startWithProfiles(forbidden *atomic.Bool) {
	w.T.Helper()
	mgr := w.manager()
	definitions := w.definitions(mgr)
	rule := selection.New(mgr.GetCache(), mgr.GetAPIReader(), definitions, w.time)
	w.add(mgr, Options{Rule: rule, Definitions: definitions, Clock: w.time})
	guard := func(context.Context) (profiles.Verdict, error) {
		return profiles.Verdict{Allowed: !forbidden.Load(), Reason: "UpstreamGateOn"}, nil
	}
	events, err := notices.Add(mgr, w.time)
	apitest.Must(w.T, err)
	_, err = inventory.Add(w.T.Context(), mgr, inventory.Options{
		Rule: rule, Guard: guard, References: w.refs, Events: events, Metrics: metrics.New(metrics.Options{}), Clock: w.time,
	})
	apitest.Must(w.T, err)
	w.stop = apitest.Run(w.whole, mgr.Start)
}

func (w *world) clearFleet() {
	for _, list := range []client.ObjectList{
		&clusterv1.ManagedClusterList{}, &addonv1beta1.ManagedClusterAddOnList{},
		&clusterv1beta2.ManagedClusterSetBindingList{}, &clusterv1beta2.ManagedClusterSetList{},
	} {
		w.Clear(list)
	}
	w.clearHub()
}

// order returns the writes of profiles and slices that mention a text, including those of
// slices that do not mention it while they concern a Placement.
func (w *world) order(placement string) []string {
	var calls []apitest.Call
	for _, call := range w.wire.Writes("clusterprofiles", "clusterprofiles/status", "placementdecisions") {
		if call.Resource != "placementdecisions" || call.Mentions(placement+infix) {
			calls = append(calls, call)
		}
	}
	return apitest.Summarize(calls)
}

func (w *world) follow(cluster *clusterv1.ManagedCluster, value string) {
	w.T.Helper()
	apitest.EditStatus(w, cluster, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "x", Value: value}}
	})
	w.Eventually("the profile follows", func() string {
		profile := w.Profile(w.ns, cluster.Name)
		if profile == nil || len(profile.Status.Properties) == 0 {
			return "there is no profile, or no property"
		}
		return cmp.Diff(value, profile.Status.Properties[0].Value)
	})
}

// TestReferencesFollowAndPrecedeProfiles shows the order of writes.
func TestReferencesFollowAndPrecedeProfiles(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearFleet)
	var forbidden atomic.Bool
	w.startWithProfiles(&forbidden)
	stays := w.Cluster("stays", ocmtest.InSet(w.set))
	goes := w.Cluster("goes", ocmtest.InSet(w.set))
	w.choose("p", []string{stays.Name})
	w.shows("p", stays.Name)
	w.EventuallyGone(ocmtest.OurProfile(w.ns, goes.Name)) // until it was chosen from, the whole set was shown

	w.wire.Reset()
	w.choose("p", []string{stays.Name, goes.Name})
	w.shows("p", goes.Name+" "+stays.Name)
	came := []string{"POST clusterprofiles", "PATCH clusterprofiles/status", "PATCH placementdecisions"}
	if diff := cmp.Diff(came, w.order("p")); diff != "" {
		t.Errorf("it comes: writes (-want +got):\n%s", diff)
	}

	gone := []string{"PATCH placementdecisions", "DELETE clusterprofiles"}
	w.wire.Reset()
	w.MustDelete(ocmtest.Addon(goes.Name))
	w.EventuallyGone(ocmtest.OurProfile(w.ns, goes.Name))
	w.shows("p", stays.Name)
	if diff := cmp.Diff(gone, w.order("p")); diff != "" {
		t.Errorf("its addon goes: writes (-want +got):\n%s", diff)
	}
	w.Enable(goes.Name)
	w.shows("p", goes.Name+" "+stays.Name)

	w.wire.Reset()
	w.choose("p", []string{stays.Name})
	w.EventuallyGone(ocmtest.OurProfile(w.ns, goes.Name))
	w.shows("p", stays.Name)
	if diff := cmp.Diff(gone, w.order("p")); diff != "" {
		t.Errorf("it is not chosen any more: writes (-want +got):\n%s", diff)
	}

	w.wire.Reset()
	w.MustDelete(w.Profile(w.ns, stays.Name))
	w.follow(stays, "1")
	forbidden.Store(true)
	w.MustDelete(w.Profile(w.ns, stays.Name))
	w.choose("p", []string{stays.Name, goes.Name})
	w.Stays(2*gatherTime, "while another client owns the profiles, nothing changes", func() string {
		return cmp.Diff(stays.Name, w.shown("p"))
	})
	for _, call := range w.order("p") {
		if strings.HasSuffix(call, "placementdecisions") {
			t.Errorf("another client deleted a profile, or the gate was switched on: %s", call)
		}
	}
}

// Making writes of slices fail keeps no profile alive.
func TestAProfileDoesNotWaitForever(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearFleet)
	var forbidden atomic.Bool
	w.startWithProfiles(&forbidden)
	cluster := w.Cluster("c", ocmtest.InSet(w.set))
	w.choose("p", []string{cluster.Name})
	w.shows("p", cluster.Name)
	w.wire.Fail(func(c apitest.Call) apitest.Fault {
		if c.IsWrite() && c.Resource == "placementdecisions" {
			return apitest.Fault{Status: http.StatusInternalServerError, Reason: "InternalError", Message: "a webhook fails"}
		}
		return apitest.Fault{}
	})
	w.wire.Reset()
	w.MustDelete(ocmtest.Addon(cluster.Name))
	w.EventuallyGone(ocmtest.OurProfile(w.ns, cluster.Name))
	if len(w.wire.Writes("placementdecisions")) == 0 {
		t.Error("no attempt was made to remove the reference before")
	}
	w.wire.Fail(nil)
	w.shows("p", "")
}

// TestUnbinding: with the last set of the namespace, slices and profiles are removed,
// slices first.
func TestUnbinding(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearFleet)
	var forbidden atomic.Bool
	w.startWithProfiles(&forbidden)
	names := make([]string, 3)
	for i := range names {
		names[i] = w.Cluster(fmt.Sprint("c", i), ocmtest.InSet(w.set)).Name
	}
	w.choose("p", names)
	w.shows("p", strings.Join(names, " "))
	w.wire.Reset()
	w.MustDelete(&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.set}})
	for _, cluster := range names {
		w.EventuallyGone(ocmtest.OurProfile(w.ns, cluster))
	}
	want := []string{
		"DELETE placementdecisions", "DELETE clusterprofiles", "DELETE clusterprofiles", "DELETE clusterprofiles"}
	if diff := cmp.Diff(want, w.order("p")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestProfilesDeletedWhileTheManagerWasDown: a reference to a deleted profile, whose
// cluster nothing selects any more, is found after a start.
func TestProfilesDeletedWhileTheManagerWasDown(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearFleet)
	var forbidden atomic.Bool
	w.startWithProfiles(&forbidden)
	stays, goes := w.Cluster("stays", ocmtest.InSet(w.set)), w.Cluster("goes", ocmtest.InSet(w.set))
	w.choose("p", []string{goes.Name, stays.Name})
	w.shows("p", goes.Name+" "+stays.Name)
	w.stop()
	w.MustDelete(w.Profile(w.ns, goes.Name), goes, ocmtest.Addon(goes.Name))
	w.wire.Reset()
	w.startWithProfiles(&forbidden)
	w.shows("p", stays.Name)
	if diff := cmp.Diff([]string{"PATCH placementdecisions"}, w.order("p")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
