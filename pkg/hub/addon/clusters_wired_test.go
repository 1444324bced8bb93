package addon

import (
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// clusterChanges: the framework reconciles an addon because of its ManagedCluster alone if
// the cluster is back or has other registries, and for nothing else. Each change waits until
// no other event of the addon is left that could have the same effect.
func clusterChanges(r *rollout) {
	addon := r.join()
	r.refer(addon)
	r.runsAnywhere(addon)
	r.becomesAvailable(addon)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: addon.Namespace}}
	clusterIs := func(status string) {
		r.T.Helper()
		r.Wire.Settle(r.T, apitest.Patience, unwritten)
		apitest.EditStatus(r, cluster, func(c *clusterv1.ManagedCluster) {
			apimeta.SetStatusCondition(&c.Status.Conditions,
				ocmtest.Condition("ManagedClusterConditionAvailable", status, "R", ""))
		})
	}

	// The spoke is unreachable, about which Open Cluster Management writes into the addon, and
	// reconnects with nothing new to report.
	clusterIs("Unknown")
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		apimeta.SetStatusCondition(&a.Status.Conditions, ocmtest.Condition("Available", "Unknown", "R", ""))
	})
	r.Stays(unwritten, "the addon is not available", func() string { return r.available(addon, "Unknown") })
	clusterIs("True")
	r.Eventually("the addon is available again", func() string { return r.available(addon, "True") })

	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	apitest.Edit(r, cluster, func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{
			"open-cluster-management.io/image-registries": `{"registries":[{"source":"example.com","mirror":"mirror.example.com"}]}`,
		}
	})
	r.Eventually("the image is the mirror's", func() string {
		return cmp.Diff("mirror.example.com/inventory:v1", r.agent(addon).Spec.Template.Spec.Containers[0].Image)
	})

	const undecided = "NotDecidedAgain" // for as long as there is no outcome, the condition is as it was
	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		apimeta.SetStatusCondition(&a.Status.Conditions, ocmtest.Condition("ConfigurationApplied", "Unknown", undecided, ""))
	})
	r.Wire.Settle(r.T, apitest.Patience, 5*time.Second) // a reconcile that writes nothing may be late
	r.outcomes.Forget(addon.Namespace)
	apitest.Edit(r, cluster, func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"another": "label"} })
	clusterIs("False")
	r.Stays(unwritten, "the addon is not reconciled", func() string {
		desired, err := r.outcomes.Desired(r.T.Context(), addon.Namespace)
		apitest.Must(r.T, err)
		if desired.Reason != undecided {
			return "it is"
		}
		return ""
	})
}

// becomesAvailable has the spoke report that the agent runs.
func (r *rollout) becomesAvailable(addon *addonv1beta1.ManagedClusterAddOn) {
	r.T.Helper()
	apitest.EditStatus(r, r.deployWork(addon), func(w *workv1.ManifestWork) {
		ready := int64(1)
		w.Status.Conditions = []metav1.Condition{ocmtest.Condition("Applied", "True", "R", ""),
			ocmtest.Condition("Available", "True", "R", "")}
		w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Group: "apps",
				Resource: "deployments", Namespace: "agents", Name: manifests.AgentName},
			Conditions: []metav1.Condition{},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{
				Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &ready},
			}}},
		}}
	})
	r.Eventually("the addon is available", func() string { return r.available(addon, "True") })
}

// available returns how the status of the addon's condition Available differs.
func (r *rollout) available(addon *addonv1beta1.ManagedClusterAddOn, want metav1.ConditionStatus) string {
	r.T.Helper()
	r.MustGet(addon)
	condition := apimeta.FindStatusCondition(addon.Status.Conditions, "Available")
	if condition == nil {
		return "there is no condition Available"
	}
	return cmp.Diff(want, condition.Status)
}
