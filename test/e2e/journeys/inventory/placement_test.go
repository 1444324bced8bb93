package inventory

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// placing is a publishing Placement that selects clusters by name.
func placing(namespace string, clusters ...string) *clusterv1beta1.Placement {
	values := clusters
	if len(values) == 0 {
		values = []string{"none"}
	}
	return &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "view",
			Labels: map[string]string{journeys.Publish: "true"}},
		Spec: clusterv1beta1.PlacementSpec{
			Predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "journey-name",
					Operator: metav1.LabelSelectorOpIn, Values: values}}},
			}}},
			Tolerations: []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}},
		},
	}
}

// named gives the clusters a label with their name, for a Placement to select by.
func named(t *testing.T, clusters ...string) {
	t.Helper()
	for _, cluster := range clusters {
		journeys.Label(t, cluster, "journey-name", cluster)
	}
}

// A consumer narrows its view with a Placement, and widens it again.
func TestPlacementNarrowsAndWidens(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	named(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "view", journeys.Cluster1, journeys.Cluster2)
	kept := journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster2)

	view := journeys.Create(t, journeys.Hub(t), placing(ns, journeys.Cluster1))
	journeys.HasNoProfile(t, ns, journeys.Cluster2)

	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/predicates/0/requiredClusterSelector/labelSelector/matchExpressions/0/values/-","value":%q}]`, journeys.Cluster2)
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), view, client.RawPatch(types.JSONPatchType, []byte(patch))))
	journeys.HasProfile(t, ns, journeys.Cluster2)
	if now := journeys.HasProfile(t, ns, journeys.Cluster1); now.UID != kept.UID {
		t.Error("the profile that was in view all the time was recreated")
	}

	// Without the Placement, the binding alone decides.
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), view))
	journeys.Stays(t, journeys.Quiet, "profile without the Placement",
		journeys.SameProfile(t, journeys.HasProfile(t, ns, journeys.Cluster2)))
}

// A new Placement without a decision deletes nothing.
func TestUndecidedPlacementDeletesNothing(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	named(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "undecided", journeys.Cluster1, journeys.Cluster2)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	other := journeys.HasProfile(t, ns, journeys.Cluster2)

	journeys.Stopped(t, "hub/placement")
	journeys.Create(t, journeys.Hub(t), placing(ns, journeys.Cluster1))
	journeys.Says(t, journeys.Cluster2, journeys.ProfilesSynced, metav1.ConditionUnknown, "SelectionUnknown", ns)
	journeys.Stays(t, journeys.Quiet, "profile while nothing is decided", journeys.SameProfile(t, other))

	journeys.Started(t, "hub/placement")
	journeys.HasNoProfile(t, ns, journeys.Cluster2)
}

// A namespace that requires a Placement stays empty until there is one.
func TestNamespaceRequiresPlacement(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	named(t, journeys.Cluster1)
	ns := journeys.Create(t, journeys.Hub(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "require-",
		Annotations:  map[string]string{"inventory.open-cluster-management.io/require-placement": "true"},
	}}).Name
	s := journeys.Set(t, "require")
	journeys.Bind(t, ns, s)
	journeys.InSet(t, journeys.Cluster1, s)
	open := journeys.Namespace(t, "open")
	journeys.Bind(t, open, s)
	journeys.HasProfile(t, open, journeys.Cluster1)
	journeys.NoProfileComes(t, ns, journeys.Cluster1)

	journeys.Create(t, journeys.Hub(t), placing(ns, journeys.Cluster1))
	journeys.HasProfile(t, ns, journeys.Cluster1)
}
