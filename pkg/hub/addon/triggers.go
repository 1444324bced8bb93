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
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if cluster, ok := obj.(*clusterv1.ManagedCluster); ok && !isInInitialList {
				c.enqueue(cluster.Name)
				c.enqueueGuests(cluster.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			old, wasCluster := before.(*clusterv1.ManagedCluster)
			now, isCluster := after.(*clusterv1.ManagedCluster)
			if wasCluster && isCluster && old.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() {
				c.enqueueGuests(now.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if cluster, ok := kube.InEvent[*clusterv1.ManagedCluster](obj); ok {
				c.enqueueGuests(cluster.Name)
			}
		},
	}
}

// onGoneAddons forgets the outcomes of deleted addons.
func (f *framework) onGoneAddons() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if addon, ok := kube.InEvent[*addonv1beta1.ManagedClusterAddOn](obj); ok {
			f.outcomes.Forget(addon.Namespace)
		}
	}}
}

func (c *controllers) enqueueGuests(host string) {
	for _, guest := range c.observed.guests(host) {
		c.enqueue(guest)
	}
}

// onHosting makes the framework reconcile a hosting cluster's own addon when it gets or
// loses a guest, and its guests when its own addon is deleted or becomes hosted: a
// namespace may have become free, or a cluster able to host.
func (c *controllers) onHosting() toolscache.ResourceEventHandler {
	guest := func(obj any) {
		if addon := addonIn(obj); addon != nil && ownwork.WantedHost(addon) != "" {
			c.enqueue(ownwork.WantedHost(addon))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, now := addonIn(before), addonIn(after)
			if old != nil && now != nil && ownwork.WantedHost(old) != ownwork.WantedHost(now) {
				guest(old)
				guest(now)
				c.enqueueGuests(now.Namespace)
			}
		},
		DeleteFunc: func(obj any) {
			guest(obj)
			if addon := addonIn(obj); addon != nil {
				c.enqueueGuests(addon.Namespace)
			}
		},
	}
}

// addonIn returns this addon's object that an event is about, or nil.
func addonIn(obj any) *addonv1beta1.ManagedClusterAddOn {
	if addon, ok := kube.InEvent[*addonv1beta1.ManagedClusterAddOn](obj); ok && addon.Name == contract.AddonName {
		return addon
	}
	return nil
}
