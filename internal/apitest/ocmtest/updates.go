package ocmtest

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/predicatetest"
)

// ClusterUpdates are updates of a ManagedCluster for predicatetest.Check. Those with the given
// names must pass, all others must not.
func ClusterUpdates(t *testing.T, pass ...string) map[string]predicatetest.Update {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "1", Labels: map[string]string{"a": "b"}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{
			Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1"},
			Conditions:    []metav1.Condition{Condition("ManagedClusterConditionAvailable", "True", "R", "m")},
			ClusterClaims: []clusterv1.ManagedClusterClaim{Claim("a", "1")},
		},
	}
	updates := map[string]predicatetest.Update{"a resync or heartbeat": {Before: cluster}}
	for name, edit := range map[string]func(*clusterv1.ManagedCluster){
		"capacity": func(c *clusterv1.ManagedCluster) {
			c.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("1")}
			c.Status.Allocatable = clusterv1.ResourceList{"cpu": resource.MustParse("1")}
		},
		"a taint, the lease duration, an annotation": func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}}
			c.Spec.LeaseDurationSeconds = 9
			c.Annotations = map[string]string{"a": "b"}
		},
		"a condition that is not shown": func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = append(c.Status.Conditions,
				Condition("ManagedClusterConditionClockSynced", "True", "R", ""))
		},
		"only a transition time": func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].LastTransitionTime = metav1.Now()
		},
		"a label":                         func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"a": "c"} },
		"accepted":                        func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false },
		"version":                         func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v2" },
		"a claim":                         func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims[0].Value = "2" },
		"no claims":                       func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = nil },
		"the status of a shown condition": func(c *clusterv1.ManagedCluster) { c.Status.Conditions[0].Status = "False" },
		"the message of a shown condition": func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[0].Message = "n"
		},
		"a new shown condition": func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = append(c.Status.Conditions, Condition("ManagedClusterJoined", "True", "R", ""))
		},
		"a removed shown condition": func(c *clusterv1.ManagedCluster) { c.Status.Conditions = nil },
	} {
		updates[name] = predicatetest.Update{Before: cluster, Edit: predicatetest.As(edit)}
	}
	for _, name := range pass {
		update, ok := updates[name]
		if !ok {
			t.Fatalf("there is no update %q", name)
		}
		update.Want = true
		updates[name] = update
	}
	return updates
}
