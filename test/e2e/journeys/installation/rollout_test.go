package installation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// rolloutSet is the set of the clusters that are upgraded one after the other.
const rolloutSet = "rollout-fleet"

// A new revision of the agent goes to one cluster, and to the next only when that has
// succeeded and soaked, also if the next one has a configuration of its own. NetworkPolicies
// that only the old one has go with it.
func TestAgentsAreUpgradedOneAfterTheOther(t *testing.T) {
	strategy := oneByOne(t, "installStrategy.rollout.minSuccessTime=45s", "agent.networkPolicy.enabled=true")
	own := journeys.Create(t, journeys.Hub(t), &addonv1beta1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: journeys.ManagerNS, Name: "own"},
		Spec: addonv1beta1.AddOnDeploymentConfigSpec{
			NodePlacement: &addonv1beta1.NodePlacement{NodeSelector: map[string]string{corev1.LabelOSStable: "linux"}},
		},
	})
	names(t, journeys.Cluster2, own)
	runsWith(t, journeys.Cluster2, "-v=0", map[string]string{corev1.LabelOSStable: "linux"}, nil)
	completed(t, journeys.Cluster1)
	completed(t, journeys.Cluster2)
	old := agentDeployment(t, journeys.Cluster2)
	hasPolicies(t, journeys.Cluster1, 2)
	hasPolicies(t, journeys.Cluster2, 2)

	journeys.Installed(t, append(strategy, "--set", "agent.logLevel=1", "--set", "agent.networkPolicy.enabled=false")...)
	runsWith(t, journeys.Cluster1, "-v=1", nil, nil)
	hasPolicies(t, journeys.Cluster1, 0)
	hasPolicies(t, journeys.Cluster2, 2)
	completed(t, journeys.Cluster1)
	journeys.Available(t, journeys.Cluster1)
	journeys.Says(t, journeys.Cluster2, "Configured", metav1.ConditionFalse, "ConfigurationsNotConfigured")
	journeys.Stays(t, journeys.Quiet, "the agent whose turn has not come", func(ctx context.Context) error {
		return isStill(ctx, t, journeys.Cluster2, old)
	})

	runsWith(t, journeys.Cluster2, "-v=1", map[string]string{corev1.LabelOSStable: "linux"}, nil)
	completed(t, journeys.Cluster2)
	journeys.Available(t, journeys.Cluster2)
	hasPolicies(t, journeys.Cluster2, 0)
}

// hasPolicies waits until a spoke has so many NetworkPolicies of the addon. Nothing enforces
// them here.
func hasPolicies(t *testing.T, cluster string, want int) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, fmt.Sprintf("%s has %d NetworkPolicies", cluster, want), func(ctx context.Context) error {
		policies := &networkingv1.NetworkPolicyList{}
		err := journeys.ClientOf(t, cluster).List(ctx, policies,
			client.InNamespace(journeys.AgentNS), client.MatchingLabels{journeys.MarkLabel: journeys.MarkValue})
		if err == nil && len(policies.Items) != want {
			err = fmt.Errorf("it has %d", len(policies.Items))
		}
		return err
	})
}

// A revision whose image does not exist stops at the first cluster, which says so. Edits by
// others meanwhile do not reach the second one, and a rollback restores the agent.
func TestAnImageThatDoesNotExistStopsAtTheFirstCluster(t *testing.T) {
	strategy := append(oneByOne(t, "installStrategy.rollout.progressDeadline=45s"),
		"--set-string", `agent.config.nodeSelector.kubernetes\.io/os=linux`)
	journeys.Installed(t, strategy...)
	linux := map[string]string{corev1.LabelOSStable: "linux"}
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		runsWith(t, cluster, "-v=0", linux, nil)
		completed(t, cluster)
		journeys.Available(t, cluster)
	}
	before := agentDeployment(t, journeys.Cluster1)
	second := agentDeployment(t, journeys.Cluster2)
	secondIsStill := func(ctx context.Context) error { return isStill(ctx, t, journeys.Cluster2, second) }

	journeys.Installed(t, append(strategy, "--set", "agent.image.repository=registry.example.com/none")...)
	apitest.Within(t, journeys.Eventually, "the rollout counts the cluster as failed", func(ctx context.Context) error {
		if err := secondIsStill(ctx); err != nil {
			t.Fatal("the second cluster got the image:", err)
		}
		return saysTimeout(ctx, t)
	})
	if image := agentDeployment(t, journeys.Cluster1).Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "registry.example.com/none") {
		t.Errorf("the first cluster was to try the image, and has %s", image)
	}
	journeys.Says(t, journeys.Cluster1, "Available", metav1.ConditionFalse, "ProbeUnavailable", "no pod of the Deployment")
	journeys.Says(t, journeys.Cluster1, "Progressing", metav1.ConditionTrue, "Progressing")
	journeys.Stays(t, journeys.Quiet, "the agent after the failure", secondIsStill)

	// Edits of shared configurations wait like everything else, and revisions cannot be
	// edited.
	shared := &addonv1beta1.AddOnDeploymentConfig{}
	key := types.NamespacedName{Namespace: journeys.ManagerNS, Name: journeys.AddonName + "-agent"}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), key, shared))
	edit(t, shared, func(spec *addonv1beta1.AddOnDeploymentConfigSpec) {
		spec.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "logLevel", Value: "3"}}
	})
	refuseEdits(t)
	apitest.Within(t, journeys.Eventually, "the edit reaches the first cluster", func(context.Context) error {
		return isOfLevel(agentDeployment(t, journeys.Cluster1), "-v=3")
	})
	journeys.Stays(t, journeys.Quiet, "the agent after an edit", secondIsStill)
	edit(t, shared, func(spec *addonv1beta1.AddOnDeploymentConfigSpec) { spec.CustomizedVariables = nil })

	journeys.RolledBack(t)
	apitest.Within(t, journeys.Eventually, "the first cluster has its agent back", func(context.Context) error {
		return isSame(before, agentDeployment(t, journeys.Cluster1))
	})
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		completed(t, cluster)
		journeys.Available(t, cluster)
	}
	if err := secondIsStill(t.Context()); err != nil {
		t.Errorf("the second cluster, which was never to change: %v", err)
	}
}

// oneByOne installs the addon on both clusters by a Placement, which changes one at a time.
// It returns the Helm arguments. The clusters leave when the story ends.
func oneByOne(t *testing.T, more ...string) []string {
	t.Helper()
	set := journeys.Create(t, journeys.Hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: rolloutSet},
		Spec: clusterv1beta2.ManagedClusterSetSpec{
			ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
		},
	})
	clusters := []string{journeys.Cluster1, journeys.Cluster2}
	for _, cluster := range clusters {
		journeys.Disable(t, cluster)
		journeys.InSet(t, cluster, set.Name)
	}
	args := []string{}
	for _, value := range append([]string{
		"installStrategy.type=Placements", "installStrategy.placement.clusterSet=" + set.Name,
		"installStrategy.rollout.type=Progressive", "installStrategy.rollout.maxConcurrency=1",
	}, more...) {
		args = append(args, "--set", value)
	}
	journeys.Installed(t, args...)
	for _, cluster := range clusters {
		completed(t, cluster)
		journeys.Available(t, cluster)
	}
	return args
}

// completed waits until OCM counts the cluster as done with what it should have, which is
// what the definition names.
func completed(t *testing.T, cluster string) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, cluster+" is done", func(ctx context.Context) error {
		definition := &addonv1beta1.ClusterManagementAddOn{}
		if err := journeys.Hub(t).Get(ctx, types.NamespacedName{Name: journeys.AddonName}, definition); err != nil {
			return err
		}
		addon := journeys.AddonOf(cluster)
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(addon), addon); err != nil {
			return err
		}
		for _, reference := range addon.Status.ConfigReferences {
			if reference.DesiredConfig == nil || reference.LastAppliedConfig == nil || reference.DesiredConfig.SpecHash == "" ||
				*reference.DesiredConfig != *reference.LastAppliedConfig {
				return fmt.Errorf("%s: desired %v, applied %v", reference.Resource, reference.DesiredConfig, reference.LastAppliedConfig)
			}
		}
		for _, config := range definition.Spec.DefaultConfigs {
			if config.Resource != "agentrevisions" {
				continue
			}
			for _, reference := range addon.Status.ConfigReferences {
				if reference.Resource == config.Resource && reference.DesiredConfig.Name == config.Name {
					return nil
				}
			}
			return fmt.Errorf("it refers to %v, and not to %s", addon.Status.ConfigReferences, config.Name)
		}
		return errors.New("the definition names no revision")
	})
}

// saysTimeout is an error until the rollout reports that one cluster has timed out.
func saysTimeout(ctx context.Context, t *testing.T) error {
	t.Helper()
	definition := &addonv1beta1.ClusterManagementAddOn{}
	if err := journeys.Hub(t).Get(ctx, types.NamespacedName{Name: journeys.AddonName}, definition); err != nil {
		return err
	}
	for _, progression := range definition.Status.InstallProgressions {
		found := meta.FindStatusCondition(progression.Conditions, "Progressing")
		if found != nil && strings.Contains(found.Message, "1 timeout") {
			return nil
		}
	}
	return fmt.Errorf("progress is %+v", definition.Status.InstallProgressions)
}

// isOfLevel is an error unless the agent has this argument.
func isOfLevel(agent *appsv1.Deployment, level string) error {
	for _, argument := range agent.Spec.Template.Spec.Containers[0].Args {
		if argument == level {
			return nil
		}
	}
	return fmt.Errorf("its arguments are %v", agent.Spec.Template.Spec.Containers[0].Args)
}

func agentRevisions() *unstructured.UnstructuredList {
	revisions := &unstructured.UnstructuredList{}
	revisions.SetAPIVersion("inventory.open-cluster-management.io/v1alpha1")
	revisions.SetKind("AgentRevisionList")
	return revisions
}

// refuseEdits tries to edit each revision in place.
func refuseEdits(t *testing.T) {
	t.Helper()
	revisions := agentRevisions()
	apitest.Must(t, journeys.Hub(t).List(t.Context(), revisions))
	if len(revisions.Items) < 2 {
		t.Errorf("%d revisions, although clusters refer to the earlier one", len(revisions.Items))
	}
	for i := range revisions.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"logLevel":9}}`))
		if err := journeys.Hub(t).Patch(t.Context(), &revisions.Items[i], patch); err == nil ||
			!strings.Contains(err.Error(), "cannot be changed") {
			t.Errorf("an edit of %s: %v", revisions.Items[i].GetName(), err)
		}
	}
}
