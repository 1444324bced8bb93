package inventory

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// A consumer team binds a set and finds the clusters in it, with their descriptions.
func TestClusterJoins(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	s := journeys.Set(t, "join")
	ns := journeys.Namespace(t, "join")
	journeys.Bind(t, ns, s)
	journeys.NoProfileComes(t, ns, journeys.Cluster1)

	journeys.InSet(t, journeys.Cluster1, s)
	profile := journeys.HasProfile(t, ns, journeys.Cluster1)

	managed := &clusterv1.ManagedCluster{}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), types.NamespacedName{Name: journeys.Cluster1}, managed))
	for key, want := range map[string]string{
		"x-k8s.io/cluster-manager":                  "open-cluster-management",
		"open-cluster-management.io/cluster-name":   journeys.Cluster1,
		"multicluster.x-k8s.io/clusterset":          s,
		"multicluster.x-k8s.io/inventory-member-id": journeys.Cluster1,
		journeys.MarkLabel:                          journeys.MarkValue,
	} {
		if got := profile.Labels[key]; got != want {
			t.Errorf("label %s = %q, want %q", key, got, want)
		}
	}
	if got := profile.Spec.ClusterManager.Name; got != "open-cluster-management" {
		t.Errorf("cluster manager = %q", got)
	}
	if got := profile.Spec.DisplayName; got != journeys.Cluster1 {
		t.Errorf("display name = %q", got)
	}
	if got, want := profile.Status.Version.Kubernetes, managed.Status.Version.Kubernetes; got != want || got == "" {
		t.Errorf("version = %q, the cluster says %q", got, want)
	}
	if !meta.IsStatusConditionTrue(profile.Status.Conditions, "Joined") {
		t.Errorf("conditions = %+v, want Joined", profile.Status.Conditions)
	}
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
}

// A cluster that leaves its set leaves the namespaces bound to it.
func TestClusterLeavesItsSet(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "leave", journeys.Cluster1, journeys.Cluster2)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	stayer := journeys.HasProfile(t, ns, journeys.Cluster2)

	journeys.MoveTo(t.Context(), t, journeys.Cluster1, journeys.DefaultSet)
	journeys.HasNoProfile(t, ns, journeys.Cluster1)
	journeys.Stays(t, journeys.Quiet, "the other cluster's profile", journeys.SameProfile(t, stayer))
}

// Two clusters that swap sets swap namespaces, though neither set changes size.
func TestTwoClustersSwapSets(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	left, right := journeys.Set(t, "left"), journeys.Set(t, "right")
	leftNS, rightNS := journeys.Namespace(t, "left"), journeys.Namespace(t, "right")
	journeys.Bind(t, leftNS, left)
	journeys.Bind(t, rightNS, right)
	journeys.InSet(t, journeys.Cluster1, left)
	journeys.InSet(t, journeys.Cluster2, right)
	journeys.HasProfile(t, leftNS, journeys.Cluster1)
	journeys.HasProfile(t, rightNS, journeys.Cluster2)

	journeys.MoveTo(t.Context(), t, journeys.Cluster1, right)
	journeys.MoveTo(t.Context(), t, journeys.Cluster2, left)
	journeys.HasProfile(t, leftNS, journeys.Cluster2)
	journeys.HasProfile(t, rightNS, journeys.Cluster1)
	journeys.HasNoProfile(t, leftNS, journeys.Cluster1)
	journeys.HasNoProfile(t, rightNS, journeys.Cluster2)
}

// Deleting a binding deletes its namespace's profiles; a binding labelled not to publish
// never creates any.
func TestBindingDecides(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	s := journeys.Set(t, "binding")
	journeys.InSet(t, journeys.Cluster1, s)
	bound, silent := journeys.Namespace(t, "bound"), journeys.Namespace(t, "silent")
	binding := journeys.Bind(t, bound, s)
	journeys.Create(t, journeys.Hub(t), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: silent, Name: s, Labels: map[string]string{journeys.Publish: "false"}},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: s},
	})
	journeys.HasProfile(t, bound, journeys.Cluster1)
	journeys.NoProfileComes(t, silent, journeys.Cluster1)

	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), binding))
	journeys.HasNoProfile(t, bound, journeys.Cluster1)
}

// A set with an invalid selector deletes nothing, and does not affect other sets.
func TestInvalidSetIsUnknownNotEmpty(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	broken := journeys.Create(t, journeys.Hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "selector-"},
		Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.LabelSelector,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"feature.open-cluster-management.io/addon-" + journeys.AddonName: "available"}},
		}},
	})
	ns := journeys.Namespace(t, "selector")
	journeys.Bind(t, ns, broken.Name)
	before := journeys.HasProfile(t, ns, journeys.Cluster1)

	patch := `{"spec":{"clusterSelector":{"labelSelector":{"matchLabels":null,"matchExpressions":[{"key":"a","operator":"Resembles","values":["b"]}]}}}}`
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), broken, client.RawPatch(types.MergePatchType, []byte(patch))))
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced,
		metav1.ConditionUnknown, "SelectionUnknown", ns, broken.Name)
	journeys.Stays(t, journeys.Quiet, "the profile of the broken set", journeys.SameProfile(t, before))

	other := journeys.Sandbox(t, "sound", journeys.Cluster1)
	journeys.HasProfile(t, other, journeys.Cluster1)
}

// A profile of that name that another cluster manager created is left alone, and the
// cluster's condition says so.
func TestForeignProfileIsLeftAlone(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns, s := journeys.Namespace(t, "foreign"), journeys.Set(t, "foreign")
	foreign := journeys.Create(t, journeys.Hub(t), &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: journeys.Cluster1},
		Spec: inventoryv1alpha1.ClusterProfileSpec{DisplayName: "theirs",
			ClusterManager: inventoryv1alpha1.ClusterManager{Name: "another"}},
	})
	journeys.Bind(t, ns, s)
	journeys.InSet(t, journeys.Cluster1, s)
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse, "ForeignProfile", ns)
	journeys.MoveTo(t.Context(), t, journeys.Cluster1, journeys.DefaultSet)
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
	journeys.Stays(t, journeys.Quiet, "the other manager's profile", journeys.SameProfile(t, foreign))
}

// An earlier profile, created by OCM itself, is adopted in place.
func TestProfileIsAdoptedInPlace(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns, s := journeys.Namespace(t, "adopt"), journeys.Set(t, "adopt")
	old := journeys.Create(t, journeys.Hub(t), &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: journeys.Cluster1,
			Labels: map[string]string{"x-k8s.io/cluster-manager": "open-cluster-management", "team": "ours"}},
		Spec: inventoryv1alpha1.ClusterProfileSpec{DisplayName: "old",
			ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
	})
	journeys.Bind(t, ns, s)
	journeys.InSet(t, journeys.Cluster1, s)
	profile := journeys.HasProfile(t, ns, journeys.Cluster1)
	if profile.UID != old.UID {
		t.Errorf("UID changed from %s to %s", old.UID, profile.UID)
	}
	if profile.Labels[journeys.MarkLabel] != journeys.MarkValue || profile.Labels["team"] != "ours" {
		t.Errorf("labels = %v, want the mark added and the team kept", profile.Labels)
	}
}

// A namespace whose quota is exhausted is reported, and its profile is created by itself
// once there is room.
func TestQuotaIsSaidAndWaitedFor(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns, s := journeys.Namespace(t, "quota"), journeys.Set(t, "quota")
	quota := journeys.Create(t, journeys.Hub(t), resourceQuota(ns, "count/clusterprofiles.multicluster.x-k8s.io", "0"))
	apitest.Within(t, journeys.Soon, "the quota is in force", func(ctx context.Context) error {
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return fmt.Errorf("status is %+v", quota.Status)
		}
		return nil
	})
	journeys.Bind(t, ns, s)
	journeys.InSet(t, journeys.Cluster1, s)
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse, "WriteFailed", ns, "quota")
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), quota))
	apitest.Within(t, journeys.Eventually, "profile after the quota went", func(ctx context.Context) error {
		_, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, journeys.Cluster1)
		return err
	})
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
}

func resourceQuota(namespace, what, hard string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceName(what): resource.MustParse(hard)}},
	}
}
