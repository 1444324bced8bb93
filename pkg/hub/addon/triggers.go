package addon

import (
	toolscache "k8s.io/client-go/tools/cache"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// enqueue makes the framework reconcile a cluster's addon.
func (c *controllers) enqueue(cluster string) {
	for _, controller := range c.perCluster() {
		controller.SyncContext().Queue().Add(queueKey(cluster))
	}
}

// onClusters makes the framework reconcile the addon of a cluster that it did not know yet
// and, also when a cluster is deleted, those whose agents it hosts: the framework leaves
// alone an addon that it sees before its cluster, and ignores events of a hosting cluster.
func (c *controllers) onClusters() toolscache.ResourceEventHandler {
	return kube.OnEvent(func(before, after *clusterv1.ManagedCluster, initial bool) {
		switch {
		case after == nil:
			c.enqueueHosted(before.Name)
		case before == nil && !initial:
			c.enqueue(after.Name)
			c.enqueueHosted(after.Name)
		case before != nil && before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero():
			c.enqueueHosted(after.Name)
		}
	})
}

func (f *framework) onGoneAddons() toolscache.ResourceEventHandler {
	return kube.OnEvent(func(before, after *addonv1beta1.ManagedClusterAddOn, _ bool) {
		if after == nil {
			f.outcomes.Forget(before.Namespace)
		}
	})
}

func (c *controllers) enqueueHosted(host string) {
	for _, cluster := range c.observed.hosted(host) {
		c.enqueue(cluster)
	}
}

// onHosting makes the framework reconcile a hosting cluster's own addon when it gets or loses a hosted
// agent, and the addons of hosted agents when its own addon is deleted or becomes hosted: a namespace may
// have become free, or a cluster able to host.
func (c *controllers) onHosting() toolscache.ResourceEventHandler {
	return kube.OnEvent(func(before, after *addonv1beta1.ManagedClusterAddOn, _ bool) {
		if before == nil || before.Name != contract.AddonName {
			return
		}
		hosts := []string{ownwork.WantedHost(before)}
		if after != nil {
			hosts = append(hosts, ownwork.WantedHost(after))
			if hosts[0] == hosts[1] {
				return
			}
		}
		for _, host := range hosts {
			if host != "" {
				c.enqueue(host)
			}
		}
		c.enqueueHosted(before.Namespace)
	})
}
