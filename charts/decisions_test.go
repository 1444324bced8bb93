package charts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// testDecisionsUnderTheChartsRights: the manager as installed publishes what a Placement
// chooses, and withdraws it with the cluster.
func testDecisionsUnderTheChartsRights(t *testing.T) {
	h := install(t)
	h.Patience = 2 * time.Minute // as for tokens: the CRDs of this hub are new
	set := h.ExclusiveSet("set")
	team := h.Namespace("team", nil)
	binding := h.Bind(team, set.Name)
	cluster := h.Cluster("cluster1", ocmtest.InSet(set.Name))
	placement, decision := h.Placement(team, "view", cluster.Name)
	slice := &inventoryv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "view-profiles-0"}}
	h.CleanUp(set, binding, cluster, ocmtest.Addon(cluster.Name), placement, decision, slice,
		ocmtest.OurProfile(team, cluster.Name))
	hubtest.Start(t, server.User(t, hubtest.User))
	shows := func(want ...string) {
		t.Helper()
		h.Eventually("what the Placement chooses", func() string {
			list := &inventoryv1alpha1.PlacementDecisionList{}
			h.MustList(list, client.InNamespace(team))
			if len(list.Items) != 1 {
				return cmp.Diff(1, len(list.Items))
			}
			got := []string{}
			for _, d := range list.Items[0].Decisions {
				got = append(got, d.ClusterProfileRef.Name)
			}
			return cmp.Diff(append([]string{}, want...), got)
		})
	}
	shows(cluster.Name)
	h.MustDelete(ocmtest.Addon(cluster.Name))
	shows()
	h.EventuallyGone(ocmtest.OurProfile(team, cluster.Name))
}

// Other schedulers publish PlacementDecisions, too.
func testTheManagerMayWriteOnlyItsDecisions(t *testing.T) {
	p := install(t)
	team := p.namespace("team")
	decision := func(name, manager, namespace string) *inventoryv1alpha1.PlacementDecision {
		return &inventoryv1alpha1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: team, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": manager},
			},
			Decisions: []inventoryv1alpha1.ClusterDecision{{
				ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: "c", Namespace: namespace},
			}},
			SchedulerName: "cluster-inventory-addon",
		}
	}
	const ours = "cluster-inventory-addon"
	const onlyOurs, onlyHere = "only PlacementDecisions that it has made", "only to ClusterProfiles in the same namespace"
	foreign := decision("foreign", "another", "")
	p.eventuallyRefused(foreign, onlyOurs)
	p.MustCreate(foreign)
	mark := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"`+ours+`"}}}`))
	checkAttempt(t, p.manager.Patch(t.Context(), foreign.DeepCopy(), mark), onlyOurs)
	checkAttempt(t, p.manager.Delete(t.Context(), foreign), onlyOurs)
	checkAttempt(t, p.manager.Create(t.Context(), decision("elsewhere", ours, "other")), onlyHere)
	own := decision("own", ours, team)
	checkAttempt(t, p.manager.Create(t.Context(), own), "")
	for patch, message := range map[string]string{
		`{"schedulerName":"another"}`:                      "only under its own scheduler name",
		`{"metadata":{"finalizers":["example.com/hold"]}}`: "may add no finalizers",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]}}`: "may add no owners",
	} {
		raw := client.RawPatch(types.MergePatchType, []byte(patch))
		checkAttempt(t, p.manager.Patch(t.Context(), own.DeepCopy(), raw), message)
	}
	empty := client.RawPatch(types.MergePatchType, []byte(`{"decisions":[]}`))
	checkAttempt(t, p.manager.Patch(t.Context(), own, empty), "")
	checkAttempt(t, p.manager.Delete(t.Context(), own), "")
	p.Remove(foreign)
}
