package journeys

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
)

// A consumer team binds a set and finds the clusters in it, described.
func TestClusterJoins(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	s := set(t, "join")
	ns := namespace(t, "join")
	bind(t, ns, s)
	noProfileComes(t, ns, cluster1)

	inSet(t, cluster1, s)
	profile := hasProfile(t, ns, cluster1)

	managed := &clusterv1.ManagedCluster{}
	apitest.Must(t, hub(t).Get(t.Context(), types.NamespacedName{Name: cluster1}, managed))
	for key, want := range map[string]string{
		"x-k8s.io/cluster-manager":                "open-cluster-management",
		"open-cluster-management.io/cluster-name": cluster1,
		"multicluster.x-k8s.io/clusterset":        s,
		markLabel:                                 markValue,
	} {
		if got := profile.Labels[key]; got != want {
			t.Errorf("label %s = %q, want %q", key, got, want)
		}
	}
	if got := profile.Spec.ClusterManager.Name; got != "open-cluster-management" {
		t.Errorf("cluster manager = %q", got)
	}
	if got := profile.Spec.DisplayName; got != cluster1 {
		t.Errorf("display name = %q", got)
	}
	if got, want := profile.Status.Version.Kubernetes, managed.Status.Version.Kubernetes; got != want || got == "" {
		t.Errorf("version = %q, the cluster says %q", got, want)
	}
	if !meta.IsStatusConditionTrue(profile.Status.Conditions, "Joined") {
		t.Errorf("conditions = %+v, want Joined", profile.Status.Conditions)
	}
	says(t, cluster1, conditionPS, metav1.ConditionTrue, "Synced", ns)
}

// A cluster that leaves its set leaves the namespaces bound to it.
func TestClusterLeavesItsSet(t *testing.T) {
	installed(t)
	enabled(t, cluster1, cluster2)
	ns := sandbox(t, "leave", cluster1, cluster2)
	hasProfile(t, ns, cluster1)
	stayer := hasProfile(t, ns, cluster2)

	moveTo(t.Context(), t, cluster1, defaultSet)
	hasNoProfile(t, ns, cluster1)
	stays(t, quiet, "the other cluster's profile", sameProfile(t, stayer))
}

// Two clusters that swap sets swap namespaces, though neither set changes size.
func TestTwoClustersSwapSets(t *testing.T) {
	installed(t)
	enabled(t, cluster1, cluster2)
	left, right := set(t, "left"), set(t, "right")
	leftNS, rightNS := namespace(t, "left"), namespace(t, "right")
	bind(t, leftNS, left)
	bind(t, rightNS, right)
	inSet(t, cluster1, left)
	inSet(t, cluster2, right)
	hasProfile(t, leftNS, cluster1)
	hasProfile(t, rightNS, cluster2)

	moveTo(t.Context(), t, cluster1, right)
	moveTo(t.Context(), t, cluster2, left)
	hasProfile(t, leftNS, cluster2)
	hasProfile(t, rightNS, cluster1)
	hasNoProfile(t, leftNS, cluster1)
	hasNoProfile(t, rightNS, cluster2)
}

// A binding that goes takes its namespace's profiles with it; one that is told
// not to publish never makes any.
func TestBindingDecides(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	s := set(t, "binding")
	inSet(t, cluster1, s)
	bound, silent := namespace(t, "bound"), namespace(t, "silent")
	binding := bind(t, bound, s)
	create(t, hub(t), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: silent, Name: s, Labels: map[string]string{publish: "false"}},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: s},
	})
	hasProfile(t, bound, cluster1)
	noProfileComes(t, silent, cluster1)

	apitest.Must(t, hub(t).Delete(t.Context(), binding))
	hasNoProfile(t, bound, cluster1)
}

// A set with an invalid selector deletes nothing, and other sets go on.
func TestInvalidSetIsUnknownNotEmpty(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	broken := create(t, hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "selector-"},
		Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
			SelectorType:  clusterv1beta2.LabelSelector,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"feature.open-cluster-management.io/addon-" + addonName: "available"}},
		}},
	})
	ns := namespace(t, "selector")
	bind(t, ns, broken.Name)
	before := hasProfile(t, ns, cluster1)

	patch := `{"spec":{"clusterSelector":{"labelSelector":{"matchLabels":null,"matchExpressions":[{"key":"a","operator":"Resembles","values":["b"]}]}}}}`
	apitest.Must(t, hub(t).Patch(t.Context(), broken, client.RawPatch(types.MergePatchType, []byte(patch))))
	says(t, cluster1, conditionPS, metav1.ConditionUnknown, "SelectionUnknown", ns, broken.Name)
	stays(t, quiet, "the profile of the broken set", sameProfile(t, before))

	other := sandbox(t, "sound", cluster1)
	hasProfile(t, other, cluster1)
}

// A profile of that name that another cluster manager made is left alone, and
// the cluster says so.
func TestForeignProfileIsLeftAlone(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns, s := namespace(t, "foreign"), set(t, "foreign")
	foreign := create(t, hub(t), &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: cluster1},
		Spec:       inventoryv1alpha1.ClusterProfileSpec{DisplayName: "theirs", ClusterManager: inventoryv1alpha1.ClusterManager{Name: "another"}},
	})
	bind(t, ns, s)
	inSet(t, cluster1, s)
	says(t, cluster1, conditionPS, metav1.ConditionFalse, "ForeignProfile", ns)
	moveTo(t.Context(), t, cluster1, defaultSet)
	says(t, cluster1, conditionPS, metav1.ConditionTrue, "NotSelected")
	stays(t, quiet, "the other manager's profile", sameProfile(t, foreign))
}

// A profile from before, made by OCM itself, is taken over in place.
func TestProfileIsAdoptedInPlace(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns, s := namespace(t, "adopt"), set(t, "adopt")
	old := create(t, hub(t), &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: cluster1, Labels: map[string]string{"x-k8s.io/cluster-manager": "open-cluster-management", "team": "ours"}},
		Spec:       inventoryv1alpha1.ClusterProfileSpec{DisplayName: "old", ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
	})
	bind(t, ns, s)
	inSet(t, cluster1, s)
	profile := hasProfile(t, ns, cluster1)
	if profile.UID != old.UID {
		t.Errorf("UID changed from %s to %s", old.UID, profile.UID)
	}
	if profile.Labels[markLabel] != markValue || profile.Labels["team"] != "ours" {
		t.Errorf("labels = %v, want the mark added and the team kept", profile.Labels)
	}
}

// A namespace whose quota is used up says so, and its profile comes by itself
// once there is room.
func TestQuotaIsSaidAndWaitedFor(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns, s := namespace(t, "quota"), set(t, "quota")
	quota := create(t, hub(t), resourceQuota(ns, "count/clusterprofiles.multicluster.x-k8s.io", "0"))
	apitest.Within(t, soon, "the quota is in force", func(ctx context.Context) error {
		if err := hub(t).Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return fmt.Errorf("status is %+v", quota.Status)
		}
		return nil
	})
	bind(t, ns, s)
	inSet(t, cluster1, s)
	says(t, cluster1, conditionPS, metav1.ConditionFalse, "WriteFailed", ns, "quota")
	apitest.Must(t, hub(t).Delete(t.Context(), quota))
	apitest.Within(t, eventually, "profile after the quota went", func(ctx context.Context) error {
		_, err := profileOf(ctx, hub(t), ns, cluster1)
		return err
	})
	says(t, cluster1, conditionPS, metav1.ConditionTrue, "Synced", ns)
}

// sameProfile checks that the profile is exactly the object it was.
func sameProfile(t *testing.T, want *inventoryv1alpha1.ClusterProfile) func(context.Context) error {
	c := hub(t)
	return func(ctx context.Context) error {
		got, err := profileOf(ctx, c, want.Namespace, want.Name)
		if err != nil {
			return err
		}
		if got.UID != want.UID || got.ResourceVersion != want.ResourceVersion {
			return fmt.Errorf("it was UID %s at version %s, and is UID %s at %s", want.UID, want.ResourceVersion, got.UID, got.ResourceVersion)
		}
		return nil
	}
}

func resourceQuota(namespace, what, hard string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceName(what): resource.MustParse(hard)}},
	}
}
