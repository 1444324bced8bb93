package addon

import (
	"cmp"
	"fmt"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// indexAddonByHost finds addons by the other cluster on which their agent should run,
	// and indexAddonByHostedNamespace by the namespace of such an agent there.
	indexAddonByHost            = "addonByHost"
	indexAddonByHostedNamespace = "addonByHostedNamespace"

	// indexWorkByCluster finds ManifestWorks, whether they are being deleted or not, by the
	// cluster whose agent they deploy or clean up: on that cluster, and on hosting ones.
	indexWorkByCluster = "workByCluster"
)

// observed holds the framework's caches.
type observed struct {
	addons  toolscache.Indexer // with hostIndexers
	works   toolscache.Indexer // with workIndexers
	sources configuration.Sources

	allowedRegistries []string
}

// locate observes where a cluster's agent runs and should run.
func (o observed) locate(addon *addonv1beta1.ManagedClusterAddOn) configuration.Location {
	there := o.deployed(addon)
	at := configuration.Location{
		Cluster: addon.Namespace, Allowed: o.allowedRegistries, There: there, Host: configuration.Host(addon, there),
	}
	if its := o.addon(ownwork.WantedHost(addon)); its != nil {
		at.HostsHost = ownwork.WantedHost(its)
	}
	if at.Host == "" {
		at.HostedIn = func(namespace string) string { return o.hostedIn(addon.Namespace, namespace) }
	} else if own := o.addon(at.Host); own != nil {
		if onHost := o.deployed(own); onHost.Host == "" {
			at.HostsOwn = onHost.Namespace
		}
	}
	return at
}

// host is Location.Host alone.
func (o observed) host(addon *addonv1beta1.ManagedClusterAddOn) string {
	return configuration.Host(addon, o.deployed(addon))
}

// deployed reads the ManifestWorks for a cluster's agent, ordered by the clusters that run them.
func (o observed) deployed(addon *addonv1beta1.ManagedClusterAddOn) manifests.Deployed {
	works := indexed[*workv1.ManifestWork](o.works, indexWorkByCluster, queueKey(addon.Namespace))
	slices.SortFunc(works, func(one, another *workv1.ManifestWork) int {
		return cmp.Or(cmp.Compare(one.Namespace, another.Namespace), cmp.Compare(one.Name, another.Name))
	})
	return manifests.DeployedFor(addon, works)
}

// hostedIn returns the cluster whose agent should run in a namespace of a hosting cluster,
// or "".
func (o observed) hostedIn(host, namespace string) string {
	for _, addon := range indexed[*addonv1beta1.ManagedClusterAddOn](o.addons, indexAddonByHostedNamespace, namespace) {
		if o.host(addon) == host {
			return addon.Namespace
		}
	}
	return ""
}

// hosted returns the clusters whose agents run, or should run, on a cluster.
func (o observed) hosted(host string) []string {
	var clusters []string
	for _, addon := range indexed[*addonv1beta1.ManagedClusterAddOn](o.addons, indexAddonByHost, host) {
		clusters = append(clusters, addon.Namespace)
	}
	// The annotation may have changed since.
	for _, work := range indexed[*workv1.ManifestWork](o.works, toolscache.NamespaceIndex, host) {
		if cluster := ownwork.HostedCluster(work); cluster != "" {
			clusters = append(clusters, cluster)
		}
	}
	return kube.SortedNames(clusters)
}

// addon returns the cached addon of a cluster, or nil.
func (o observed) addon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	cached, ok, err := o.addons.GetByKey(queueKey(cluster))
	if err != nil || !ok {
		return nil
	}
	addon, _ := cached.(*addonv1beta1.ManagedClusterAddOn)
	return addon
}

// indexed returns the objects of a cache with a key in one of its indexes.
func indexed[T any](objects toolscache.Indexer, name, key string) []T {
	found, err := objects.ByIndex(name, key)
	if err != nil {
		return nil // there is no such index: a bug that every test would reveal
	}
	typed := make([]T, 0, len(found))
	for _, obj := range found {
		if object, ok := obj.(T); ok {
			typed = append(typed, object)
		}
	}
	return typed
}

// hostIndexers are the indexes of addons whose agents other clusters host, or should host;
// other addons are in none.
func hostIndexers() toolscache.Indexers {
	return toolscache.Indexers{
		indexAddonByHost: indexBy(ownwork.WantedHost),
		indexAddonByHostedNamespace: indexBy(func(addon *addonv1beta1.ManagedClusterAddOn) string {
			if ownwork.WantedHost(addon) == "" && !ownwork.IsHosted(addon) {
				return ""
			}
			return ownwork.HostedNamespace(addon.Namespace)
		}),
	}
}

// workIndexers are the framework's indexes of ManifestWorks, and indexWorkByCluster. The
// framework's own index functions trust labels, with which a cluster could make any
// ManifestWork in its namespace one of another cluster's addon: the framework would delete
// those of that name in the namespace of the other's host, and write its content there.
func workIndexers() toolscache.Indexers {
	by := func(cluster func(work *workv1.ManifestWork, name ownwork.Name) string) toolscache.IndexFunc {
		return indexBy(func(work *workv1.ManifestWork) string {
			name, ok := ownwork.ReadName(work)
			if !ok {
				return ""
			}
			if found := cluster(work, name); found != "" {
				return queueKey(found)
			}
			return ""
		})
	}
	onHost := func(cleanup bool) toolscache.IndexFunc {
		return by(func(work *workv1.ManifestWork, name ownwork.Name) string {
			// A work that is being deleted does not say where the agent should run, or how
			// it is.
			if name.Cleanup != cleanup || !work.DeletionTimestamp.IsZero() {
				return ""
			}
			return name.Hosted
		})
	}
	return toolscache.Indexers{
		index.ManifestWorkByAddon: by(func(work *workv1.ManifestWork, name ownwork.Name) string {
			if name.Hosted != "" || name.Cleanup {
				return ""
			}
			return work.Namespace
		}),
		index.ManifestWorkByHostedAddon:     onHost(false),
		index.ManifestWorkHookByHostedAddon: onHost(true),
		indexWorkByCluster: by(func(work *workv1.ManifestWork, _ ownwork.Name) string {
			return ownwork.ClusterOf(work)
		}),
	}
}

// indexBy returns an index of the objects of one type by a key; those with an empty key are not in it.
func indexBy[T any](key func(T) string) toolscache.IndexFunc {
	return func(obj any) ([]string, error) {
		object, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("not a %T", object)
		}
		if value := key(object); value != "" {
			return []string{value}, nil
		}
		return nil, nil
	}
}
