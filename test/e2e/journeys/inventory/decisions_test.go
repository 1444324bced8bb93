package inventory

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// refersTo waits until the PlacementDecisions of a Placement refer to exactly the clusters,
// in one slice.
func refersTo(t *testing.T, namespace, placement string, clusters ...string) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, "the decisions of "+placement, func(ctx context.Context) error {
		list := &inventoryv1alpha1.PlacementDecisionList{}
		err := journeys.Hub(t).List(ctx, list, client.InNamespace(namespace),
			client.MatchingLabels{"multicluster.x-k8s.io/decision-key": placement})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d slices", len(list.Items))
		}
		var names []string
		for _, decision := range list.Items[0].Decisions {
			names = append(names, decision.ClusterProfileRef.Name)
		}
		if !slices.Equal(names, clusters) {
			return fmt.Errorf("it refers to %v", names)
		}
		return nil
	})
}

// withdraws watches the hub from now on, and returns a function that checks that the
// reference to a cluster was removed before its profile.
func withdraws(t *testing.T, namespace, cluster string) (check func()) {
	t.Helper()
	watch, err := journeys.Hub(t).Watch(t.Context(),
		&inventoryv1alpha1.ClusterProfileList{}, client.InNamespace(namespace))
	apitest.Must(t, err)
	early := make(chan error, 1)
	go func() {
		defer close(early)
		for event := range watch.ResultChan() {
			if event.Type != "DELETED" || event.Object.(*inventoryv1alpha1.ClusterProfile).Name != cluster {
				continue
			}
			list := &inventoryv1alpha1.PlacementDecisionList{}
			if err := journeys.Hub(t).List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				early <- err
			}
			for _, slice := range list.Items {
				for _, decision := range slice.Decisions {
					if decision.ClusterProfileRef.Name == cluster {
						early <- fmt.Errorf("%s refers to the profile that has gone", slice.Name)
					}
				}
			}
			return
		}
	}()
	return func() {
		t.Helper()
		defer watch.Stop()
		if err := <-early; err != nil {
			t.Error(err)
		}
	}
}

// A SIG-Multicluster scheduler reads which clusters a Placement chooses: it sees only
// clusters that have a profile, and loses them before the profile is deleted.
func TestPlacementIsPublishedAsDecisions(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	named(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "decisions", journeys.Cluster1, journeys.Cluster2)
	view := journeys.Create(t, journeys.Hub(t), placing(ns, journeys.Cluster1))
	refersTo(t, ns, view.Name, journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)

	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/predicates/0/requiredClusterSelector/labelSelector/matchExpressions/0/values/-","value":%q}]`, journeys.Cluster2)
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), view, client.RawPatch(types.JSONPatchType, []byte(patch))))
	refersTo(t, ns, view.Name, journeys.Cluster1, journeys.Cluster2)

	// One slice is not recreated while its clusters come and go.
	slice := &inventoryv1alpha1.PlacementDecision{}
	key := types.NamespacedName{Namespace: ns, Name: view.Name + "-profiles-0"}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), key, slice))
	check := withdraws(t, ns, journeys.Cluster2)
	journeys.MoveTo(t.Context(), t, journeys.Cluster2, journeys.DefaultSet)
	journeys.HasNoProfile(t, ns, journeys.Cluster2)
	check()
	refersTo(t, ns, view.Name, journeys.Cluster1)
	uid := slice.UID
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), key, slice))
	if slice.UID != uid {
		t.Error("the slice was recreated")
	}

	// A slice that another client deletes is recreated; a withdrawn one is not.
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), slice))
	refersTo(t, ns, view.Name, journeys.Cluster1)
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), view))
	apitest.Within(t, journeys.Soon, "no decisions without the Placement", func(ctx context.Context) error {
		list := &inventoryv1alpha1.PlacementDecisionList{}
		if err := journeys.Hub(t).List(ctx, list, client.InNamespace(ns)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d slices", len(list.Items))
		}
		return nil
	})
}
