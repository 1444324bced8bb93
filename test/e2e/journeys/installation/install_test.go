package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// Installed by a Placement over the set sandbox-fleet, the addon is installed on the
// clusters of that set and on no other, and its own binding publishes nothing.
func TestInstallByPlacement(t *testing.T) {
	sandboxFleet := journeys.Create(t, journeys.Hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox-fleet"},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}},
	})
	journeys.Disable(t, journeys.Cluster1)
	journeys.Disable(t, journeys.Cluster2)
	journeys.InSet(t, journeys.Cluster1, sandboxFleet.Name)
	journeys.Installed(t, "--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.clusterSet=sandbox-fleet")
	journeys.Available(t, journeys.Cluster1)
	for cluster, name := range map[string]string{"hub": journeys.ManagerNS, journeys.Cluster1: journeys.AgentNS} {
		runsRestricted(t, cluster, name)
	}
	journeys.Stays(t, journeys.Quiet, "no addon outside the set", func(ctx context.Context) error {
		return journeys.Gone(ctx, journeys.Hub(t), journeys.AddonOf(journeys.Cluster2))
	})

	ns := journeys.Namespace(t, "consumer")
	journeys.Bind(t, ns, sandboxFleet.Name)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.NoProfileComes(t, journeys.ManagerNS, journeys.Cluster1)
	journeys.Tested(t)

	journeys.InSet(t, journeys.Cluster2, sandboxFleet.Name)
	journeys.Available(t, journeys.Cluster2)
	journeys.HasProfile(t, ns, journeys.Cluster2)

	for _, cluster := range []string{journeys.Cluster2, journeys.Cluster1} {
		journeys.MoveTo(t.Context(), t, cluster, journeys.DefaultSet)
		apitest.Within(t, journeys.Eventually, "the addon leaves with "+cluster, func(ctx context.Context) error {
			return journeys.Gone(ctx, journeys.Hub(t), journeys.AddonOf(cluster))
		})
		apitest.Within(t, journeys.Eventually, cluster+" is clean", func(ctx context.Context) error {
			return journeys.Clean(ctx, journeys.ClientOf(t, cluster))
		})
		journeys.HasNoProfile(t, ns, cluster)
	}
}

// runsRestricted checks that a namespace in which pods of the addon run enforces the Pod Security
// Standard "restricted".
func runsRestricted(t *testing.T, cluster, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	apitest.Must(t, journeys.ClientOf(t, cluster).Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("namespace %s of %s enforces %q", name, cluster, got)
	}
	pods := &corev1.PodList{}
	apitest.Must(t, journeys.ClientOf(t, cluster).List(t.Context(), pods, client.InNamespace(name)))
	if len(pods.Items) == 0 {
		t.Errorf("no pod runs in namespace %s of %s", name, cluster)
	}
}

// Clusters with the addon are not handed over to an undecided Placement: OCM would remove
// the addon, and so the profiles, from all of them.
func TestStrategyIsNotChangedUnderTheClusters(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "strategy", journeys.Cluster1)
	profile := journeys.HasProfile(t, ns, journeys.Cluster1)
	s := profile.Labels["multicluster.x-k8s.io/clusterset"]

	out := &bytes.Buffer{}
	err := journeys.Fleet.Deploy(t.Context(), out, "--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.clusterSet="+s)
	if told := fmt.Sprint(err, out); err == nil || !strings.Contains(told, "would lose it") || !strings.Contains(told, journeys.Cluster1) {
		journeys.InstalledOtherwise()
		t.Fatalf("upgrade to a Placement that is not there yet: %s", told)
	}

	placement := &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: journeys.ManagerNS, Name: "handover"},
		Spec:       clusterv1beta1.PlacementSpec{ClusterSets: []string{s}},
	}
	journeys.Create(t, journeys.Hub(t), placement)
	journeys.Bind(t, journeys.ManagerNS, s)
	apitest.Within(t, journeys.Soon, "the Placement decides", func(ctx context.Context) error {
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(placement), placement); err != nil {
			return err
		}
		if placement.Status.NumberOfSelectedClusters != 1 {
			return fmt.Errorf("it selects %d clusters", placement.Status.NumberOfSelectedClusters)
		}
		return nil
	})
	// The clusters that it does not choose lose the addon, as they should.
	journeys.Installed(t, "--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.create=false", "--set", "installStrategy.placement.name=handover")
	journeys.Stays(t, journeys.Quiet, "the profile under the new strategy", func(ctx context.Context) error {
		now, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, journeys.Cluster1)
		if err == nil && now.UID != profile.UID {
			err = errors.New("the profile was recreated")
		}
		return err
	})
	journeys.Installed(t)
}

// Uninstalling removes the addon from every cluster first and then itself: nothing of it is
// left except the CRDs, which are not its own.
func TestUninstallLeavesNothing(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "uninstall", journeys.Cluster1, journeys.Cluster2)
	journeys.Sets(t, journeys.Cluster1, "left.example", "behind")
	journeys.HasProfile(t, ns, journeys.Cluster2)
	journeys.Shows(t, ns, journeys.Cluster1, "left.example", "behind")

	journeys.Uninstalled(t)
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		journeys.HasNoProfile(t, ns, cluster)
		apitest.Within(t, journeys.Eventually, cluster+" is clean", func(ctx context.Context) error {
			return journeys.Clean(ctx, journeys.ClientOf(t, cluster))
		})
	}
	apitest.Within(t, journeys.Eventually, "the hub is clean", func(ctx context.Context) error {
		for _, list := range []client.ObjectList{
			&addonv1beta1.ManagedClusterAddOnList{}, &addonv1beta1.ClusterManagementAddOnList{}, &workv1.ManifestWorkList{},
			&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
			&appsv1.DeploymentList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &coordinationv1.LeaseList{}, &clusterv1beta1.PlacementList{}, &clusterv1beta2.ManagedClusterSetBindingList{},
			agentRevisions(),
		} {
			if err := journeys.Hub(t).List(ctx, list); err != nil {
				return err
			}
			if err := journeys.NoneOfOurs(list); err != nil {
				return err
			}
		}
		profiles := &inventoryv1alpha1.ClusterProfileList{}
		if err := journeys.Hub(t).List(ctx, profiles, client.MatchingLabels{journeys.MarkLabel: journeys.MarkValue}); err != nil {
			return err
		}
		if n := len(profiles.Items); n > 0 {
			return fmt.Errorf("%d marked profiles are left", n)
		}
		return nil
	})
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterprofiles.multicluster.x-k8s.io"}}
	if err := journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Errorf("the ClusterProfile CRD, which others may use: %v", err)
	}
}

// With keepProfiles the profiles outlive the addon, and the next installation adopts them.
func TestUninstallCanKeepProfiles(t *testing.T) {
	journeys.Installed(t, "--set", "uninstall.keepProfiles=true")
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "keep", journeys.Cluster1)
	kept := journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.Uninstalled(t)
	now := &inventoryv1alpha1.ClusterProfile{}
	if err := journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(kept), now); err != nil || now.UID != kept.UID {
		t.Fatalf("the profile that was to stay: UID %s, %v", now.UID, err)
	}
	if mark, marked := now.Labels[journeys.MarkLabel]; marked {
		t.Errorf("the profile that was let go is marked %q", mark)
	}

	journeys.Installed(t)
	journeys.Stays(t, journeys.Quiet, "the profile of a cluster that has no addon yet", func(ctx context.Context) error {
		_, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, journeys.Cluster1)
		return err
	})
	journeys.Enabled(t, journeys.Cluster1)
	apitest.Within(t, journeys.Soon, "the profile is taken over", func(ctx context.Context) error {
		now, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, journeys.Cluster1)
		if err != nil {
			return err
		}
		if now.UID != kept.UID {
			t.Fatal("the profile was recreated")
		}
		if now.Labels[journeys.MarkLabel] != journeys.MarkValue {
			return fmt.Errorf("its labels are %v", now.Labels)
		}
		return nil
	})
}

// The chart refuses wrong values before anything changes, with a message that names them.
func TestWrongValuesAreRefused(t *testing.T) {
	journeys.Installed(t)
	before := &addonv1beta1.ClusterManagementAddOn{}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), types.NamespacedName{Name: journeys.AddonName}, before))
	for value, names := range map[string]string{
		"installStrategy.type=Sometimes":  "installStrategy",
		"installStrategy.type=Placements": "clusterSet",
		"upstreamGates=on":                "upstreamGates",
		"cleanupTimeout=soon":             "cleanupTimeout",
		"agent.claimLimit=-1":             "claimLimit",
		"nosuchvalue=1":                   "nosuchvalue",
	} {
		t.Run(value, func(t *testing.T) {
			out := &bytes.Buffer{}
			err := journeys.Fleet.Deploy(t.Context(), out, "--set", value)
			if err == nil {
				journeys.InstalledOtherwise()
				t.Fatal("was accepted")
			}
			if told := fmt.Sprint(err, out); !strings.Contains(told, names) {
				t.Errorf("does not name %s: %s", names, told)
			}
		})
	}
	after := &addonv1beta1.ClusterManagementAddOn{}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), types.NamespacedName{Name: journeys.AddonName}, after))
	if after.UID != before.UID || after.Generation != before.Generation {
		t.Errorf("the ClusterManagementAddOn was changed from generation %d to %d", before.Generation, after.Generation)
	}
}
