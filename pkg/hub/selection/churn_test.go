package selection

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// A tenant whose own Placement keeps changing must not keep a removed addon's copies.
func TestTenantSlicesDoNotRestartTheAddonsAbsence(t *testing.T) {
	objs := append(choosing("p", "c"), installing("q", around(100, 50)...)...)
	s := newScene(t, append(objs, strategy("Placements", "q"))...)
	s.settlesAs(rule.Yes)
	apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
	s.settlesAs(rule.Unknown)
	for range 30 {
		s.later(5 * time.Second)
		s.Routes(nothing{}).PairsForDecision(t.Context(), ocmtest.Slice("p-decision-1", "p", "c"))
		_, _ = s.Selected(t.Context(), s.pair, true)
	}
	s.copies(rule.No)
	s.settlesAs(rule.No)
}

// An absence ends although another Placement keeps the answer Unknown when the addon is back.
func TestAReturnedAddonIsNotAbsentWhileUnknown(t *testing.T) {
	objs := append(choosing("p", "d"), installing("q", "c")...)
	objs[0].(*clusterv1beta1.Placement).Status.NumberOfSelectedClusters = 7 // undecided
	s := newScene(t, append(objs, strategy("Placements", "q"))...)
	addon := ocmtest.Addon("c")
	apitest.Must(t, s.cache.Delete(t.Context(), addon))
	s.copies(rule.Unknown)
	s.replace(choosing("p", "c")...)
	s.copies(rule.Unknown)
	s.replace(func() client.Object {
		o := choosing("p", "d")[0].(*clusterv1beta1.Placement)
		o.Status.NumberOfSelectedClusters = 7
		return o
	}(), ocmtest.Slice("p-decision-1", "p", "d"))
	s.replace(ocmtest.Addon("c"))
	s.later(time.Second)
	s.copies(rule.Unknown)
	s.later(20 * time.Second)
	s.copies(rule.Unknown)
	s.replace(choosing("p", "c")...) // chosen, and the addon flickers before it is observed
	apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
	s.copies(rule.Unknown)
}

func TestADeletedPlacementBeyondTheLimitCounts(t *testing.T) {
	s := newScene(t)
	for i := range maxNarrowed {
		s.settling.narrow(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("other", i)}, narrowing{})
	}
	key := types.NamespacedName{Namespace: "ns", Name: "gone"}
	for range 20 {
		if _, err := s.Choice(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		s.later(10 * time.Second)
	}
	if c, err := s.Choice(t.Context(), key); err != nil || c.Answer != rule.No {
		t.Errorf("%+v, %v", c.Result, err)
	}
}

// A read that another cluster's removal caused says nothing about one that is removed later.
func TestReinstallsIsNotAnsweredFromBeforeTheRemoval(t *testing.T) {
	objs := append(installing("p", append(around(50, 100), "c")...), strategy("Placements", "p"))
	s := newScene(t, objs...)
	if got, err := s.Reinstalls(t.Context(), goingAddon("x")); err != nil {
		t.Fatal(got, err)
	}
	s.later(300 * time.Millisecond)
	for _, obj := range installing("p", around(50, 100)...) { // c leaves, OCM deletes its addon
		s.replace(obj)
	}
	if got, err := s.Reinstalls(t.Context(), goingAddon("c")); err != nil || got == rule.Yes {
		t.Errorf("got %d, %v: its spoke is never cleaned up", got, err)
	}
}

func TestReinstallsWithoutClusterProfiles(t *testing.T) {
	s := newScene(t, append(installing("p", "a"), strategy("Placements", "p"))...)
	s.ready.Store(false) // prepared, except ClusterProfiles
	s.prepared.Store(true)
	if got, err := s.Reinstalls(t.Context(), goingAddon("c")); err != nil || got != rule.No {
		t.Errorf("%d, %v", got, err)
	}
}

func TestLiveReadsOfManyPlacements(t *testing.T) {
	var objs []client.Object
	for i := range 50 {
		objs = append(objs, choosing(fmt.Sprintf("p%03d", i), around(50, 100)...)...)
	}
	s := newScene(t, objs...)
	reads := counter{s.live, map[string]int{}}
	s.Rule.live.reader = reads
	s.absent()
	s.settlesAs(rule.No)
	n := 0
	for _, one := range reads.lists {
		n += one
	}
	if n > 10 {
		t.Errorf("%d lists for one pair of a namespace of 50 Placements: %v", n, reads.lists)
	}
}

type during struct {
	client.Reader
	do func()
}

func (d during) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	d.do()
	return d.Reader.List(ctx, list, opts...)
}

// While the slices are read live for one cluster, another returns.
func TestAClusterThatReturnsDuringALiveReadHasNotLeft(t *testing.T) {
	s := newScene(t, choosing("p", around(50, 100)...)...)
	p := types.NamespacedName{Namespace: "ns", Name: "p"}
	choice, err := s.Choice(t.Context(), p)
	apitest.Must(t, err)
	clusters := []string{"b1", "b2"}
	_, _, err = s.Leaving(t.Context(), p, choice, clusters)
	apitest.Must(t, err)
	s.later(time.Second)
	whole := newFakeCache(choosing("p", append(around(50, 100), "b2")...)...)
	s.Rule.live.reader = during{whole, func() { s.settling.Chosen(p, []string{"b2"}) }}
	left, _, err := s.Leaving(t.Context(), p, choice, clusters)
	for _, cluster := range left {
		if cluster == "b2" {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}
