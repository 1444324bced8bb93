package journeys

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// placing is a publishing Placement that selects clusters by name.
func placing(namespace string, clusters ...string) *clusterv1beta1.Placement {
	values := clusters
	if len(values) == 0 {
		values = []string{"none"}
	}
	return &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "view", Labels: map[string]string{publish: "true"}},
		Spec: clusterv1beta1.PlacementSpec{
			Predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "journey-name", Operator: metav1.LabelSelectorOpIn, Values: values}}},
			}}},
			Tolerations: []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}},
		},
	}
}

// named gives the clusters a label with their name, for a Placement to select by.
func named(t *testing.T, clusters ...string) {
	t.Helper()
	for _, cluster := range clusters {
		label(t, cluster, "journey-name", cluster)
	}
}

// A consumer narrows its view with a Placement, and widens it again.
func TestPlacementNarrowsAndWidens(t *testing.T) {
	installed(t)
	enabled(t, cluster1, cluster2)
	named(t, cluster1, cluster2)
	ns := sandbox(t, "view", cluster1, cluster2)
	kept := hasProfile(t, ns, cluster1)
	hasProfile(t, ns, cluster2)

	view := create(t, hub(t), placing(ns, cluster1))
	hasNoProfile(t, ns, cluster2)

	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/predicates/0/requiredClusterSelector/labelSelector/matchExpressions/0/values/-","value":%q}]`, cluster2)
	apitest.Must(t, hub(t).Patch(t.Context(), view, client.RawPatch(types.JSONPatchType, []byte(patch))))
	hasProfile(t, ns, cluster2)
	if now := hasProfile(t, ns, cluster1); now.UID != kept.UID {
		t.Error("the profile that was in view all the time was made anew")
	}

	// Without the Placement, the binding alone decides.
	apitest.Must(t, hub(t).Delete(t.Context(), view))
	stays(t, quiet, "profile without the Placement", sameProfile(t, hasProfile(t, ns, cluster2)))
}

// A new Placement that OCM has not decided yet deletes nothing.
func TestUndecidedPlacementDeletesNothing(t *testing.T) {
	installed(t)
	enabled(t, cluster1, cluster2)
	named(t, cluster1, cluster2)
	ns := sandbox(t, "undecided", cluster1, cluster2)
	hasProfile(t, ns, cluster1)
	other := hasProfile(t, ns, cluster2)

	stopped(t, "hub/placement")
	create(t, hub(t), placing(ns, cluster1))
	says(t, cluster2, conditionPS, metav1.ConditionUnknown, "SelectionUnknown", ns)
	stays(t, quiet, "profile while nothing is decided", sameProfile(t, other))

	started(t, "hub/placement")
	hasNoProfile(t, ns, cluster2)
}

// A namespace that requires a Placement stays empty until there is one.
func TestNamespaceRequiresPlacement(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	named(t, cluster1)
	ns := create(t, hub(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "require-", Annotations: map[string]string{"inventory.open-cluster-management.io/require-placement": "true"},
	}}).Name
	s := set(t, "require")
	bind(t, ns, s)
	inSet(t, cluster1, s)
	open := namespace(t, "open")
	bind(t, open, s)
	hasProfile(t, open, cluster1)
	noProfileComes(t, ns, cluster1)

	create(t, hub(t), placing(ns, cluster1))
	hasProfile(t, ns, cluster1)
}
