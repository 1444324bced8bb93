package scale

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

func TestTheGateIsAddedToTheOthers(t *testing.T) {
	given := []string{"ocm", "registration", "--feature-gates=ManagedClusterAutoApproval=true", "--listen=x"}
	want := []string{
		"ocm", "registration", "--feature-gates=ManagedClusterAutoApproval=true,ClusterProfile=true", "--listen=x",
	}
	if diff := cmp.Diff(want, withGate(given)); diff != "" {
		t.Error(diff)
	}
	if given[2] != "--feature-gates=ManagedClusterAutoApproval=true" {
		t.Error("the arguments of the fleet were changed")
	}
}

func TestAClusterHasTenDistinctClaims(t *testing.T) {
	p := newPopulation(nil, 3)
	names := map[string]bool{}
	for _, claim := range p.claims(2, 7) {
		names[claim.Name] = true
		if claim.Value == "" || claim.Name == serialClaim && claim.Value != "7" {
			t.Errorf("claim %+v", claim)
		}
	}
	if len(names) != claimCount {
		t.Errorf("%d claims, want %d", len(names), claimCount)
	}
}

func TestHalvesAreTheWholeFleet(t *testing.T) {
	p := newPopulation(nil, 5)
	left, right := p.inHalf(0), p.inHalf(1)
	if len(left) != 3 || len(right) != 2 {
		t.Errorf("%v and %v", left, right)
	}
}

func TestAProfileIsCompleteWithAllProperties(t *testing.T) {
	profile := func(values ...string) *inventoryv1alpha1.ClusterProfile {
		p := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
		for i, value := range values {
			name := strconv.Itoa(i)
			if i == len(values)-1 {
				name = serialClaim
			}
			p.Status.Properties = append(p.Status.Properties, inventoryv1alpha1.Property{Name: name, Value: value})
		}
		return p
	}
	tests := map[string]struct {
		profile *inventoryv1alpha1.ClusterProfile
		want    int
	}{
		"no properties yet":       {profile(), observe.Incomplete},
		"too few":                 {profile("x", "5"), observe.Incomplete},
		"all":                     {profile("x", "x", "x", "x", "x", "x", "x", "x", "x", "5"), 5},
		"a serial that is no one": {profile("x", "x", "x", "x", "x", "x", "x", "x", "x", "x"), observe.Incomplete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			key, got, ok := readProfile(test.profile)
			if got != test.want || !ok || key != (observe.Key{Namespace: "a", Name: "b"}) {
				t.Errorf("got %v %d %t, want %d", key, got, ok, test.want)
			}
		})
	}
	if _, _, ok := readProfile(&corev1.Secret{}); ok {
		t.Error("a Secret is a profile")
	}
}

func TestATokenTellsItsSerial(t *testing.T) {
	if got := serialOf(simulated.NewToken(42, time.Now())); got != 42 {
		t.Errorf("got %d", got)
	}
	for _, other := range []string{"", "a.b.c", "a.e30.c", "a"} {
		if got := serialOf(other); got != observe.Incomplete {
			t.Errorf("%q: got %d", other, got)
		}
	}
}
