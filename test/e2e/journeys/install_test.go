package journeys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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

// Installed by a Placement over the set sandbox-fleet, the addon comes to the
// clusters of that set and to no other, and its own binding publishes nothing.
func TestInstallByPlacement(t *testing.T) {
	sandboxFleet := create(t, hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox-fleet"},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}},
	})
	disable(t, cluster1)
	disable(t, cluster2)
	inSet(t, cluster1, sandboxFleet.Name)
	installed(t, "--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.clusterSet=sandbox-fleet")
	available(t, cluster1)
	stays(t, quiet, "no addon outside the set", func(ctx context.Context) error { return gone(ctx, hub(t), addonOf(cluster2)) })

	ns := namespace(t, "consumer")
	bind(t, ns, sandboxFleet.Name)
	hasProfile(t, ns, cluster1)
	noProfileComes(t, managerNS, cluster1)

	inSet(t, cluster2, sandboxFleet.Name)
	available(t, cluster2)
	hasProfile(t, ns, cluster2)

	for _, cluster := range []string{cluster2, cluster1} {
		moveTo(t.Context(), t, cluster, defaultSet)
		apitest.Within(t, eventually, "the addon leaves with "+cluster, func(ctx context.Context) error {
			return gone(ctx, hub(t), addonOf(cluster))
		})
		apitest.Within(t, eventually, cluster+" is clean", func(ctx context.Context) error {
			return clean(ctx, clientOf(t, cluster))
		})
		hasNoProfile(t, ns, cluster)
	}
}

// Clusters that have the addon are not handed over to a Placement that has not
// decided yet: OCM would take the addon, and so the profiles, from all of them.
func TestStrategyIsNotChangedUnderTheClusters(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "strategy", cluster1)
	profile := hasProfile(t, ns, cluster1)
	s := profile.Labels["multicluster.x-k8s.io/clusterset"]

	out := &bytes.Buffer{}
	err := world.Deploy(t.Context(), out, "--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.clusterSet="+s)
	if told := fmt.Sprint(err, out); err == nil || !strings.Contains(told, "would lose it") || !strings.Contains(told, cluster1) {
		installedWith = nil
		t.Fatalf("upgrade to a Placement that is not there yet: %s", told)
	}

	placement := &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: managerNS, Name: "handover"},
		Spec:       clusterv1beta1.PlacementSpec{ClusterSets: []string{s}},
	}
	create(t, hub(t), placement)
	bind(t, managerNS, s)
	apitest.Within(t, soon, "the Placement decides", func(ctx context.Context) error {
		if err := hub(t).Get(ctx, client.ObjectKeyFromObject(placement), placement); err != nil {
			return err
		}
		if placement.Status.NumberOfSelectedClusters != 1 {
			return fmt.Errorf("it selects %d clusters", placement.Status.NumberOfSelectedClusters)
		}
		return nil
	})
	// The clusters that it does not decide for lose the addon, as they should.
	installed(t, "--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.create=false", "--set", "installStrategy.placement.name=handover")
	stays(t, quiet, "the profile under the new strategy", func(ctx context.Context) error {
		now, err := profileOf(ctx, hub(t), ns, cluster1)
		if err == nil && now.UID != profile.UID {
			err = errors.New("the profile was made anew")
		}
		return err
	})
	installed(t)
}

// Uninstalling takes the addon from every cluster first and then itself: nothing
// of it is left but the CRDs, which are not its own.
func TestUninstallLeavesNothing(t *testing.T) {
	installed(t)
	enabled(t, cluster1, cluster2)
	ns := sandbox(t, "uninstall", cluster1, cluster2)
	sets(t, cluster1, "left.example", "behind")
	hasProfile(t, ns, cluster2)
	shows(t, ns, cluster1, "left.example", "behind")

	uninstalled(t)
	for _, cluster := range []string{cluster1, cluster2} {
		hasNoProfile(t, ns, cluster)
		apitest.Within(t, eventually, cluster+" is clean", func(ctx context.Context) error {
			return clean(ctx, clientOf(t, cluster))
		})
	}
	apitest.Within(t, eventually, "the hub is clean", func(ctx context.Context) error {
		for _, list := range []client.ObjectList{
			&addonv1beta1.ManagedClusterAddOnList{}, &addonv1beta1.ClusterManagementAddOnList{}, &workv1.ManifestWorkList{},
			&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
			&appsv1.DeploymentList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &coordinationv1.LeaseList{}, &clusterv1beta1.PlacementList{}, &clusterv1beta2.ManagedClusterSetBindingList{},
		} {
			if err := hub(t).List(ctx, list); err != nil {
				return err
			}
			if err := noneOfOurs(list); err != nil {
				return err
			}
		}
		profiles := &inventoryv1alpha1.ClusterProfileList{}
		if err := hub(t).List(ctx, profiles, client.MatchingLabels{markLabel: markValue}); err != nil {
			return err
		}
		if n := len(profiles.Items); n > 0 {
			return fmt.Errorf("%d marked profiles are left", n)
		}
		return nil
	})
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterprofiles.multicluster.x-k8s.io"}}
	if err := hub(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Errorf("the ClusterProfile CRD, which others may use: %v", err)
	}
}

// With keepProfiles the profiles outlive the addon, and the next installation
// takes them over.
func TestUninstallCanKeepProfiles(t *testing.T) {
	installed(t, "--set", "uninstall.keepProfiles=true")
	enabled(t, cluster1)
	ns := sandbox(t, "keep", cluster1)
	kept := hasProfile(t, ns, cluster1)
	uninstalled(t)
	now := &inventoryv1alpha1.ClusterProfile{}
	if err := hub(t).Get(t.Context(), client.ObjectKeyFromObject(kept), now); err != nil || now.UID != kept.UID {
		t.Fatalf("the profile that was to stay: UID %s, %v", now.UID, err)
	}
	if mark, marked := now.Labels[markLabel]; marked {
		t.Errorf("the profile that was let go is marked %q", mark)
	}

	installed(t)
	stays(t, quiet, "the profile of a cluster that has no addon yet", func(ctx context.Context) error {
		_, err := profileOf(ctx, hub(t), ns, cluster1)
		return err
	})
	enabled(t, cluster1)
	apitest.Within(t, soon, "the profile is taken over", func(ctx context.Context) error {
		now, err := profileOf(ctx, hub(t), ns, cluster1)
		if err != nil {
			return err
		}
		if now.UID != kept.UID {
			t.Fatal("the profile was made anew")
		}
		if now.Labels[markLabel] != markValue {
			return fmt.Errorf("its labels are %v", now.Labels)
		}
		return nil
	})
}

// Wrong values are refused by the chart, before anything changes, in words that
// name them.
func TestWrongValuesAreRefused(t *testing.T) {
	installed(t)
	before := &addonv1beta1.ClusterManagementAddOn{}
	apitest.Must(t, hub(t).Get(t.Context(), types.NamespacedName{Name: addonName}, before))
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
			err := world.Deploy(t.Context(), out, "--set", value)
			if err == nil {
				installedWith = nil
				t.Fatal("was accepted")
			}
			if told := fmt.Sprint(err, out); !strings.Contains(told, names) {
				t.Errorf("does not name %s: %s", names, told)
			}
		})
	}
	after := &addonv1beta1.ClusterManagementAddOn{}
	apitest.Must(t, hub(t).Get(t.Context(), types.NamespacedName{Name: addonName}, after))
	if after.UID != before.UID || after.Generation != before.Generation {
		t.Errorf("the ClusterManagementAddOn was changed from generation %d to %d", before.Generation, after.Generation)
	}
}
