package charts

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// fleet is some clusters with the addon, in one set.
type fleet struct {
	*shell
	set    string
	addons []*addonv1beta1.ManagedClusterAddOn
}

// name is the name of a cluster.
func (f *fleet) name(i int) string { return f.addons[i].Namespace }

// addonWrites are the writes of addons, and those among them that write conditions.
func (f *fleet) addonWrites() (all, conditions []apitest.Call) {
	all = f.wire.Writes("managedclusteraddons", "managedclusteraddons/status")
	for _, call := range all {
		if isOfConditions(call) {
			conditions = append(conditions, call)
		}
	}
	return all, conditions
}

func isOfConditions(call apitest.Call) bool {
	return call.Query.Get("fieldManager") == "hub.conditions"
}

// wrote waits until nothing more is written, and checks the writes: that many conditions of
// addons, and the listed writes of everything else. Events do not count: they report a
// binding that is not in effect yet.
func (f *fleet) wrote(what string, conditions int, others map[string]int) {
	f.T.Helper()
	f.wire.Settle(f.T, patience, settled)
	if _, got := f.addonWrites(); len(got) != conditions {
		f.T.Errorf("%s: %d writes of conditions, want %d: %v", what, len(got), conditions, got)
	}
	got := map[string]int{}
	for _, call := range f.wire.Sent() {
		if !strings.HasPrefix(call, "PATCH managedclusteraddons") && call != "POST events" {
			got[call]++
		}
	}
	if diff := cmp.Diff(others, got, cmpopts.EquateEmpty()); diff != "" {
		f.T.Errorf("%s: writes (-want +got):\n%s", what, diff)
	}
	f.wire.Reset()
}

// synced waits until both conditions of a cluster are True.
func (f *fleet) synced(i int, status metav1.ConditionStatus) {
	f.T.Helper()
	f.condition(f.addons[i], "ProfilesSynced", status)
	f.condition(f.addons[i], "CredentialsSynced", metav1.ConditionTrue)
}

func (f *fleet) setClaim(i int, value string) {
	f.T.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.name(i)}}
	apitest.EditStatus(f, cluster, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "a", Value: value}}
	})
}

// shows waits until the profile of a cluster has the claim's value.
func (f *fleet) shows(team string, i int, value string) {
	f.T.Helper()
	f.Eventually("the profile of "+f.name(i)+" is up to date", func() string {
		profile := f.Profile(team, f.name(i))
		if profile == nil || len(profile.Status.Properties) != 1 {
			return fmt.Sprintf("profile %+v", profile)
		}
		return cmp.Diff(value, profile.Status.Properties[0].Value)
	})
}

// testConditionsOfAHealthyFleet counts the writes of addons, which are the most expensive:
// one at creation, and after that only problems and their end.
func testConditionsOfAHealthyFleet(t *testing.T) {
	const clusters = 20
	f := &fleet{shell: newShell(t)}
	set := f.ExclusiveSet("set")
	f.set = set.Name
	f.CleanUp(set)
	for range clusters {
		f.addons = append(f.addons, f.join(metav1.ConditionTrue))
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.name(len(f.addons) - 1)}}
		apitest.Edit(f, cluster, func(c *clusterv1.ManagedCluster) { c.Labels = ocmtest.InSet(set.Name) })
		f.setClaim(len(f.addons)-1, "1")
	}
	for i := range clusters {
		f.synced(i, metav1.ConditionTrue)
		f.work(f.addons[i], "addon-cluster-inventory-deploy-0")
	}
	f.wire.Settle(t, patience, settled)
	all, _ := f.addonWrites()
	for i := range clusters {
		// A writer that meets a conflict writes again: addon-framework has written before,
		// and nothing follows.
		writes := slices.DeleteFunc(slices.Clone(all), func(call apitest.Call) bool {
			return !call.Mentions("/namespaces/" + f.name(i) + "/")
		})
		first := slices.IndexFunc(writes, isOfConditions)
		if first < 1 || first != len(writes)-1 {
			t.Fatalf("enabling %s: write %d of %v is the first of conditions, want the last", f.name(i), first, writes)
		}
		if !writes[first].Mentions("ProfilesSynced") || !writes[first].Mentions("CredentialsSynced") ||
			!writes[first].Mentions("Degraded") {
			t.Errorf("enabling %s: the conditions were written by %s", f.name(i), writes[first].Body)
		}
	}
	f.wire.Reset()

	team := f.Namespace("team", nil)
	binding := f.Bind(team, set.Name)
	f.CleanUp(binding)
	for i := range clusters {
		f.CleanUp(ocmtest.OurProfile(team, f.name(i)))
		f.shows(team, i, "1")
	}
	f.wrote("binding the set", 0,
		map[string]int{"POST clusterprofiles": clusters, "PATCH clusterprofiles/status": clusters})

	account := f.Account(f.name(0), "reader", team)
	f.CleanUp(account)
	f.Rotate(account)
	f.Eventually("the token is copied", func() string {
		return cmp.Diff(1, len(f.wire.Writes("secrets")))
	})
	f.wrote("an account", 0, map[string]int{"POST rolebindings": 2, "POST secrets": 1})

	refused := f.name(1) // the addon with its name is read again all the time
	refuse := func(call apitest.Call) apitest.Fault {
		if call.Resource == "clusterprofiles/status" && call.Method == http.MethodPatch && call.Mentions(refused) {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "a webhook refuses it"}
		}
		return apitest.Fault{}
	}
	f.wire.Fail(refuse)
	f.setClaim(1, "2")
	f.synced(1, metav1.ConditionFalse)
	f.condition(f.addons[1], "Degraded", metav1.ConditionTrue)
	f.wire.Fail(nil)
	f.setClaim(1, "3")
	f.synced(1, metav1.ConditionTrue)
	f.condition(f.addons[1], "Degraded", metav1.ConditionFalse)
	f.shows(team, 1, "3")
	f.wire.Settle(t, patience, settled)
	if _, got := f.addonWrites(); len(got) != 2 {
		t.Errorf("a failure and its end: %d writes of conditions, want 2: %v", len(got), got)
	}

	f.start()
	f.setClaim(2, "2") // what comes after the start arrives after everything else
	f.shows(team, 2, "2")
	f.wrote("a restart", 0, map[string]int{"PATCH clusterprofiles/status": 1})
}
