package installation

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

const configurationApplied = "ConfigurationApplied"

// One cluster has a configuration of its own: its agent follows that, and the other
// cluster's does not change. A mistake in the configuration changes nothing and is
// reported; once it is fixed, the agent follows.
func TestAClusterHasItsOwnConfiguration(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	plain, other := agentDeployment(t, journeys.Cluster1), agentDeployment(t, journeys.Cluster2)
	toleration := corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual,
		Value: "addons", Effect: corev1.TaintEffectNoSchedule}
	config := journeys.Create(t, journeys.Hub(t), &addonv1beta1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: journeys.ManagerNS, Name: "one-cluster"},
		Spec: addonv1beta1.AddOnDeploymentConfigSpec{
			NodePlacement: &addonv1beta1.NodePlacement{
				NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
				Tolerations:  []corev1.Toleration{toleration},
			},
			CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "logLevel", Value: "3"}},
		},
	})
	names(t, journeys.Cluster1, config)

	runsWith(t, journeys.Cluster1, "-v=3", map[string]string{corev1.LabelOSStable: "linux"},
		[]corev1.Toleration{toleration})
	journeys.Says(t, journeys.Cluster1, configurationApplied, metav1.ConditionTrue, "Applied")
	journeys.Says(t, journeys.Cluster1, "Progressing", metav1.ConditionFalse, "Completed")
	journeys.Available(t, journeys.Cluster1)
	if args := journeys.AgentPod(t.Context(), t, journeys.Cluster1).Spec.Containers[0].Args; !slices.Contains(args,
		"-v=3") {
		t.Errorf("the Pod's arguments are %v", args)
	}

	before := agentDeployment(t, journeys.Cluster1)
	edit(t, config, func(spec *addonv1beta1.AddOnDeploymentConfigSpec) {
		spec.NodePlacement.Tolerations = nil
		spec.CustomizedVariables[0].Value = "lots"
	})
	journeys.Says(t, journeys.Cluster1, configurationApplied, metav1.ConditionFalse, "InvalidConfiguration",
		"AddOnDeploymentConfig "+journeys.ManagerNS+"/one-cluster", "spec.customizedVariables[logLevel]", "lots")
	journeys.Stays(t, journeys.Quiet, "the agent", func(ctx context.Context) error {
		return isStill(ctx, t, journeys.Cluster1, before)
	})

	edit(t, config, func(spec *addonv1beta1.AddOnDeploymentConfigSpec) { spec.CustomizedVariables[0].Value = "1" })
	runsWith(t, journeys.Cluster1, "-v=1", map[string]string{corev1.LabelOSStable: "linux"}, nil)
	journeys.Says(t, journeys.Cluster1, configurationApplied, metav1.ConditionTrue, "Applied")

	// Without it, the agent is as before, and there is nothing to report.
	names(t, journeys.Cluster1, nil)
	apitest.Within(t, journeys.Eventually, "the agent is as before", func(context.Context) error {
		return isSame(plain, agentDeployment(t, journeys.Cluster1))
	})
	apitest.Within(t, journeys.Soon, "no condition is left", func(ctx context.Context) error {
		addon := journeys.AddonOf(journeys.Cluster1)
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(addon), addon); err != nil {
			return err
		}
		if found := meta.FindStatusCondition(addon.Status.Conditions, configurationApplied); found != nil {
			return fmt.Errorf("it says %s: %s", found.Reason, found.Message)
		}
		return nil
	})
	journeys.Available(t, journeys.Cluster1)
	if err := isStill(t.Context(), t, journeys.Cluster2, other); err != nil {
		t.Errorf("the other cluster's agent: %v", err)
	}
}

// agentDeployment reads the agent's Deployment on a spoke.
func agentDeployment(t *testing.T, cluster string) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	key := types.NamespacedName{Namespace: journeys.AgentNS, Name: journeys.AddonName + "-agent"}
	apitest.Must(t, journeys.ClientOf(t, cluster).Get(t.Context(), key, deployment))
	return deployment
}

// isStill is an error when the spec of an agent's Deployment was changed since.
func isStill(ctx context.Context, t *testing.T, cluster string, before *appsv1.Deployment) error {
	t.Helper()
	now := &appsv1.Deployment{}
	if err := journeys.ClientOf(t, cluster).Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
		return err
	}
	if now.UID != before.UID || now.Generation != before.Generation {
		return fmt.Errorf("it was UID %s at generation %d, and is %s at %d",
			before.UID, before.Generation, now.UID, now.Generation)
	}
	return nil
}

// isSame is an error when two Deployments have different Pods.
func isSame(want, got *appsv1.Deployment) error {
	if diff := cmp.Diff(want.Spec.Template.Spec, got.Spec.Template.Spec); diff != "" {
		return fmt.Errorf("its Pods (-want +got):\n%s", diff)
	}
	return nil
}

// runsWith waits until the agent's Deployment on a spoke, and nothing else, is as
// configured.
func runsWith(
	t *testing.T, cluster, logLevel string, selector map[string]string, tolerations []corev1.Toleration,
) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, "the agent of "+cluster+" runs as configured", func(context.Context) error {
		pod := agentDeployment(t, cluster).Spec.Template.Spec
		if diff := cmp.Diff(selector, pod.NodeSelector); diff != "" {
			return fmt.Errorf("its node selector (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(tolerations, pod.Tolerations); diff != "" {
			return fmt.Errorf("its tolerations (-want +got):\n%s", diff)
		}
		if args := pod.Containers[0].Args; !slices.Contains(args, logLevel) {
			return fmt.Errorf("its arguments: %v", args)
		}
		return nil
	})
}

// names makes a cluster's addon name a configuration, or none. When the story ends, it
// names none.
func names(t *testing.T, cluster string, config *addonv1beta1.AddOnDeploymentConfig) {
	t.Helper()
	configs := []addonv1beta1.AddOnConfig{}
	if config != nil {
		configs = append(configs, addonv1beta1.AddOnConfig{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{
				Group: addonv1beta1.GroupName, Resource: "addondeploymentconfigs",
			},
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: config.Namespace, Name: config.Name},
		})
	}
	c := journeys.Hub(t)
	set := func(ctx context.Context, configs []addonv1beta1.AddOnConfig) error {
		addon := journeys.AddonOf(cluster)
		if err := c.Get(ctx, client.ObjectKeyFromObject(addon), addon); err != nil {
			return err
		}
		before := addon.DeepCopy()
		addon.Spec.Configs = configs
		return c.Patch(ctx, addon, client.MergeFrom(before))
	}
	apitest.Must(t, set(t.Context(), configs))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), journeys.Soon)
		defer cancel()
		if err := client.IgnoreNotFound(set(ctx, nil)); err != nil {
			t.Error(err)
		}
	})
}

// edit changes a configuration, as its owner would.
func edit(
	t *testing.T, config *addonv1beta1.AddOnDeploymentConfig, change func(*addonv1beta1.AddOnDeploymentConfigSpec),
) {
	t.Helper()
	before := config.DeepCopy()
	change(&config.Spec)
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), config, client.MergeFrom(before)))
}
