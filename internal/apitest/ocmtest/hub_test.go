package ocmtest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var server = apitest.New(apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount())

func TestMain(m *testing.M) { apitest.Main(m, server) }

func TestHubIsInTheStateOCMLeaves(t *testing.T) {
	hub := New(t, server.Config(t))
	set, team := hub.ExclusiveSet("set"), hub.Namespace("team", nil)
	if binding := hub.Bind(team, set.Name); binding.Status.Conditions[0].Type != "Bound" {
		t.Errorf("binding %+v", binding.Status)
	}
	cluster := hub.Cluster("c", InSet(set.Name))
	hub.MustGet(cluster)
	if !cluster.Spec.HubAcceptsClient || len(cluster.Status.Conditions) != 3 {
		t.Errorf("cluster %+v", cluster)
	}
	placement, decision := hub.Placement(team, "p", cluster.Name)
	if placement.Status.NumberOfSelectedClusters != 1 || decision.Status.Decisions[0].ClusterName != cluster.Name {
		t.Errorf("placement %+v, decision %+v", placement.Status, decision.Status)
	}
	hub.Decide(placement, decision)
	hub.MustGet(decision)
	if len(decision.Status.Decisions) > 0 {
		t.Errorf("decision %+v", decision.Status)
	}

	if hub.Profile(team, cluster.Name) != nil {
		t.Error("a profile exists")
	}
	hub.MustCreate(OurProfile(team, cluster.Name))
	if hub.Profile(team, cluster.Name) == nil {
		t.Error("no profile exists")
	}
	if got := hub.AddonCondition(cluster.Name, "ProfilesSynced"); got.Type != "" {
		t.Errorf("condition %+v", got)
	}
}

func TestRotationChangesTokenAndTime(t *testing.T) {
	hub := New(t, server.Config(t))
	cluster := hub.Cluster("c", nil)
	account := hub.Account(cluster.Name, "reader", "a", "b")
	var tokens, seconds []string
	for range 3 {
		tokens = append(tokens, hub.Rotate(account))
		hub.MustGet(account)
		seconds = append(seconds, account.Status.TokenSecretRef.LastRefreshTimestamp.String())
	}
	if len(slices.Compact(tokens)) != 3 || len(slices.Compact(slices.Clone(seconds))) != 3 {
		t.Errorf("tokens %v of %v", tokens, seconds)
	}
	secret := TokenSecret(account, "", "")
	hub.MustGet(secret)
	want := map[string][]byte{"token": []byte(tokens[2]), "ca.crt": []byte(CA())}
	if diff := cmp.Diff(want, secret.Data); diff != "" || secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("Secret of type %s (-want +got):\n%s", secret.Type, diff)
	}
}
