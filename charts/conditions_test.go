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

// addonWrites are the writes of addons, by who makes them: the manager's conditions,
// or addon-framework.
func (f *fleet) addonWrites() (conditions, framework []apitest.Call) {
	for _, call := range f.wire.Writes("managedclusteraddons", "managedclusteraddons/status") {
		if call.Query.Get("fieldManager") == "hub.conditions" {
			conditions = append(conditions, call)
		} else {
			framework = append(framework, call)
		}
	}
	return conditions, framework
}

// wrote waits until nothing more is written, and checks what was: of addons the
// conditions of so many, of everything else what is listed.
func (f *fleet) wrote(what string, conditions int, others map[string]int) {
	f.T.Helper()
	f.wire.Settle(f.T, patience, settled)
	if got, _ := f.addonWrites(); len(got) != conditions {
		f.T.Errorf("%s: %d writes of conditions, want %d: %v", what, len(got), conditions, got)
	}
	got := map[string]int{}
	for _, call := range f.wire.Sent() {
		if !strings.HasPrefix(call, "PATCH managedclusteraddons") {
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

// testConditionsOfAHealthyFleet counts the writes of addons, which are the dearest:
// one at birth, and after that only what is wrong, and that it is not any more.
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
	ours, theirs := f.addonWrites()
	for i := range clusters {
		ofCluster := func(call apitest.Call) bool { return !call.Mentions("/namespaces/" + f.name(i) + "/") }
		if got := slices.DeleteFunc(slices.Clone(ours), ofCluster); len(got) != 1 ||
			!got[0].Mentions("ProfilesSynced") || !got[0].Mentions("CredentialsSynced") {
			t.Errorf("enabling %s: conditions are written with %v", f.name(i), got)
		}
		// Registration, finalizer, mode of the health check.
		if got := slices.DeleteFunc(slices.Clone(theirs), ofCluster); len(got) != 3 {
			t.Errorf("enabling %s: addon-framework writes %v", f.name(i), got)
		}
	}
	if strings.Contains(f.program.Log(), "the object has been modified") {
		t.Error("enabling meets a conflict")
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

	refuse := func(call apitest.Call) apitest.Fault {
		if call.Resource == "clusterprofiles/status" && call.Method == http.MethodPatch && call.Mentions(f.name(1)) {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "a webhook refuses it"}
		}
		return apitest.Fault{}
	}
	f.wire.Fail(refuse)
	f.setClaim(1, "2")
	f.synced(1, metav1.ConditionFalse)
	f.wire.Fail(nil)
	f.setClaim(1, "3")
	f.synced(1, metav1.ConditionTrue)
	f.shows(team, 1, "3")
	f.wire.Settle(t, patience, settled)
	if got, _ := f.addonWrites(); len(got) != 2 {
		t.Errorf("a failure and its end: %d writes of conditions, want 2: %v", len(got), got)
	}

	f.start()
	f.setClaim(2, "2") // what comes after the start arrives after everything else
	f.shows(team, 2, "2")
	f.wrote("a restart", 0, map[string]int{"PATCH clusterprofiles/status": 1})
}
