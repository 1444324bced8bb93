package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/predicatetest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestContentChanged(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "1", Labels: map[string]string{"a": "b"}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{
			Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1"},
			Conditions:    []metav1.Condition{ocmtest.Condition("ManagedClusterConditionAvailable", "True", "R", "m")},
			ClusterClaims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1")},
		},
	}
	edit := predicatetest.As[*clusterv1.ManagedCluster]
	predicatetest.Check(t, kube.OnChange(contentChanged), map[string]predicatetest.Update{
		"a resync or heartbeat": {Before: cluster, Want: false},
		"capacity": {Before: cluster, Want: false, Edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("1")}
			c.Status.Allocatable = clusterv1.ResourceList{"cpu": resource.MustParse("1")}
		})},
		"a taint, the lease duration, an annotation": {Before: cluster, Want: false, Edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}}
			c.Spec.LeaseDurationSeconds = 9
			c.Annotations = map[string]string{"a": "b"}
		})},
		"a condition that is not shown": {Before: cluster, Want: false, Edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = append(c.Status.Conditions,
				ocmtest.Condition("ManagedClusterConditionClockSynced", "True", "R", ""))
		})},
		"since when alone": {Before: cluster, Want: false, Edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].LastTransitionTime = metav1.Now()
		})},
		"a label": {Before: cluster, Want: false,
			Edit: edit(func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"a": "c"} })},
		"accepted": {Before: cluster, Want: false,
			Edit: edit(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })},
		"version": {Before: cluster, Want: true,
			Edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v2" })},
		"a claim": {Before: cluster, Want: true,
			Edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims[0].Value = "2" })},
		"no claims": {Before: cluster, Want: true,
			Edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = nil })},
		"the status of a condition shown": {Before: cluster, Want: true, Edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].Status = "False"
		})},
		"the message of a condition shown": {Before: cluster, Want: true, Edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].Message = "n"
		})},
		"a condition shown comes": {Before: cluster, Want: true, Edit: edit(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = append(c.Status.Conditions, ocmtest.Condition("ManagedClusterJoined", "True", "R", ""))
		})},
		"a condition shown goes": {Before: cluster, Want: true,
			Edit: edit(func(c *clusterv1.ManagedCluster) { c.Status.Conditions = nil })},
	})
}

func TestOnChangePassesCreationAndDeletion(t *testing.T) {
	p := kube.OnChange(kube.Never)
	obj := ocmtest.Addon("c")
	if !p.Create(event.CreateEvent{Object: obj}) || !p.Create(event.CreateEvent{Object: obj, IsInInitialList: true}) ||
		!p.Delete(event.DeleteEvent{Object: obj}) {
		t.Error("creation, the initial list and deletion must pass")
	}
	now := metav1.Now()
	predicatetest.Check(t, p, map[string]predicatetest.Update{
		"nothing but a version":      {Before: obj, Want: false},
		"deletion begins":            {Before: obj, Edit: func(o client.Object) { o.SetDeletionTimestamp(&now) }, Want: true},
		"another object of the name": {Before: obj, Edit: func(o client.Object) { o.SetUID("other") }, Want: true},
		"an addon's status": {Before: obj, Edit: predicatetest.As(func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = []metav1.Condition{ocmtest.Condition("Available", "True", "R", "")}
		}), Want: false},
	})
}

func TestAfterStart(t *testing.T) {
	p := predicate.And(kube.AfterStart(), kube.OnChange(guardChanged))
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	if p.Create(event.CreateEvent{Object: obj, IsInInitialList: true}) {
		t.Error("the initial list must not pass")
	}
	if !p.Create(event.CreateEvent{Object: obj}) || !p.Delete(event.DeleteEvent{Object: obj}) {
		t.Error("creation and deletion must pass")
	}
	if p.Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}) {
		t.Error("a resync must not pass")
	}
	predicatetest.Check(t, p, map[string]predicatetest.Update{"a new version": {Before: obj, Want: true}})
}

func TestGuardChanged(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a",
		Generation: 1, Annotations: map[string]string{"a": "b"}}}
	edit := predicatetest.As[*addonv1beta1.ClusterManagementAddOn]
	predicatetest.Check(t, kube.OnChange(guardChanged), map[string]predicatetest.Update{
		"a kind without generations": {Before: role, Want: true},
		"the progress of a rollout": {Before: definition, Want: false, Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) {
			d.Status.InstallProgressions = []addonv1beta1.InstallProgression{{Conditions: []metav1.Condition{ocmtest.Condition(
				"Progressing", "True", "R", "7/3500")}}}
		})},
		"the spec": {Before: definition, Want: true,
			Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Generation = 2 })},
		"an annotation": {Before: definition, Want: true,
			Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Annotations["a"] = "c" })},
		"a label": {Before: definition, Want: true,
			Edit: edit(func(d *addonv1beta1.ClusterManagementAddOn) { d.Labels = map[string]string{"a": "b"} })},
	})
}
