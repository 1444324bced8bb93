package addon

import (
	"cmp"
	"errors"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/constants"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workinformers "open-cluster-management.io/api/client/work/informers/externalversions/work/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
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

	// indexWorkByGuest finds ManifestWorks on hosting clusters, whether they are being
	// deleted or not, by the cluster whose agent they deploy.
	indexWorkByGuest = "workByGuest"
)

// hostIndexers are the indexes of addons whose agents other clusters host, or should host;
// other addons are in none.
func hostIndexers() toolscache.Indexers {
	by := func(key func(addon *addonv1beta1.ManagedClusterAddOn) string) toolscache.IndexFunc {
		return func(obj any) ([]string, error) {
			addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn)
			if !ok {
				return nil, errors.New("not a ManagedClusterAddOn")
			}
			if value := key(addon); value != "" {
				return []string{value}, nil
			}
			return nil, nil
		}
	}
	return toolscache.Indexers{
		indexAddonByHost: by(configuration.WantedHost),
		indexAddonByHostedNamespace: by(func(addon *addonv1beta1.ManagedClusterAddOn) string {
			if configuration.WantedHost(addon) == "" && !ownwork.IsHosted(addon) {
				return ""
			}
			return ownwork.HostedNamespace(addon.Namespace)
		}),
	}
}

// workIndexers are the framework's indexes of ManifestWorks, and indexWorkByGuest. The
// framework's own index functions trust labels, with which a cluster could make any
// ManifestWork in its namespace one of another cluster's addon: the framework would delete
// those of that name in the namespace of the other's host, and write its content there.
func workIndexers() toolscache.Indexers {
	by := func(key func(work *workv1.ManifestWork, name ownwork.Name) string) toolscache.IndexFunc {
		return func(obj any) ([]string, error) {
			work, ok := obj.(*workv1.ManifestWork)
			if !ok {
				return nil, errors.New("not a ManifestWork")
			}
			if name, ok := ownwork.ReadName(work); ok {
				if cluster := key(work, name); cluster != "" {
					return []string{queueKey(cluster)}, nil
				}
			}
			return nil, nil
		}
	}
	onHost := func(cleanup bool) toolscache.IndexFunc {
		return by(func(work *workv1.ManifestWork, name ownwork.Name) string {
			// A work that is being deleted does not say where the agent should run, or how
			// it is.
			if name.Cleanup != cleanup || !work.DeletionTimestamp.IsZero() {
				return ""
			}
			return name.Guest
		})
	}
	return toolscache.Indexers{
		index.ManifestWorkByAddon: by(func(work *workv1.ManifestWork, name ownwork.Name) string {
			if name.Guest != "" || name.Cleanup {
				return ""
			}
			return work.Namespace
		}),
		index.ManifestWorkByHostedAddon:     onHost(false),
		index.ManifestWorkHookByHostedAddon: onHost(true),
		indexWorkByGuest:                    by(func(_ *workv1.ManifestWork, name ownwork.Name) string { return name.Guest }),
	}
}

// worksOnHost restricts the framework, among an addon's ManifestWorks on hosting clusters,
// to those on the cluster that hosts its agent. One left on another cluster has the same
// name: the framework would delete what it has just written to the right one, and write it
// again, endlessly.
type worksOnHost struct {
	workinformers.ManifestWorkInformer
	agent *inventoryAgent
}

// Informer returns the ManifestWorks' informer.
func (w worksOnHost) Informer() toolscache.SharedIndexInformer {
	return informerOnHost{w.ManifestWorkInformer.Informer(), w.agent}
}

type informerOnHost struct {
	toolscache.SharedIndexInformer
	agent *inventoryAgent
}

// GetIndexer returns the ManifestWorks of the right host.
func (i informerOnHost) GetIndexer() toolscache.Indexer {
	return indexerOnHost{i.SharedIndexInformer.GetIndexer(), i.agent}
}

type indexerOnHost struct {
	toolscache.Indexer
	agent *inventoryAgent
}

// ByIndex implements toolscache.Indexer. For an agent that no cluster hosts, it returns all
// works, so that they are deleted.
func (i indexerOnHost) ByIndex(name, key string) ([]any, error) {
	found, err := i.Indexer.ByIndex(name, key)
	if err != nil || len(found) == 0 ||
		name != index.ManifestWorkByHostedAddon && name != index.ManifestWorkHookByHostedAddon {
		return found, err
	}
	cluster, _, err := toolscache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	addon := i.agent.addon(cluster)
	if addon == nil {
		return found, nil
	}
	host := i.agent.host(addon)
	if host == "" {
		return found, nil
	}
	return slices.DeleteFunc(slices.Clone(found), func(obj any) bool {
		work, ok := obj.(*workv1.ManifestWork)
		return ok && work.Namespace != host
	}), nil
}

// frameworkMode tells the framework where a cluster's agent runs. When an agent is no
// longer hosted, the framework leaves one of the finalizers that it added for that, and
// would wait for a clean-up on the host when the addon is removed. So frameworkMode drops
// it from the copy of the addon that the framework is about to write.
func (a *inventoryAgent) frameworkMode(
	addon *addonv1beta1.ManagedClusterAddOn, _ *clusterv1.ManagedCluster,
) (string, string) {
	host := a.host(addon)
	if host != "" {
		return constants.InstallModeHosted, host
	}
	if ownwork.IsHosted(addon) && !slices.ContainsFunc(a.worksFor(addon.Namespace), func(work *workv1.ManifestWork) bool {
		return manifests.IsDeployedFor(work, addon)
	}) {
		addon.Finalizers = ownwork.Without(slices.Clone(addon.Finalizers), addonv1beta1.AddonHostingPreDeleteHookFinalizer)
	}
	return constants.InstallModeDefault, ""
}

// host returns the cluster on which a cluster's agent runs, or should run, if that is another
// one. A deployed agent stays where it is, even if the annotation has changed: the framework
// would delete its manifests on the hosting cluster without a clean-up, and then wait for one
// forever. The same applies while the deployed works are being deleted.
func (a *inventoryAgent) host(addon *addonv1beta1.ManagedClusterAddOn) string {
	wanted, works := configuration.WantedHost(addon), a.worksFor(addon.Namespace)
	if wanted == "" && len(works) == 0 {
		return ""
	}
	if there, err := a.deployed(addon); err == nil && there.HasAgent() && !configuration.MayMove(addon, there.Host()) {
		return there.Host()
	}
	for _, work := range works {
		if !work.DeletionTimestamp.IsZero() && manifests.IsDeployedFor(work, addon) {
			return work.Namespace
		}
	}
	if wanted == addon.Namespace {
		return "" // which is refused
	}
	return wanted
}

// worksFor returns the ManifestWorks for a cluster's agent that are, or were, on hosting
// clusters, ordered by these.
func (a *inventoryAgent) worksFor(cluster string) []*workv1.ManifestWork {
	return worksBy(a.works, indexWorkByGuest, cluster)
}

func worksBy(works toolscache.Indexer, name, cluster string) []*workv1.ManifestWork {
	found, err := works.ByIndex(name, queueKey(cluster))
	if err != nil {
		return nil // there is no such index
	}
	var typed []*workv1.ManifestWork
	for _, obj := range found {
		if work, ok := obj.(*workv1.ManifestWork); ok {
			typed = append(typed, work)
		}
	}
	slices.SortFunc(typed, func(one, another *workv1.ManifestWork) int {
		return cmp.Or(cmp.Compare(one.Namespace, another.Namespace), cmp.Compare(one.Name, another.Name))
	})
	return typed
}

// hostedWork returns the ManifestWork with a cluster's agent on a hosting cluster, or nil.
// If a former host has put another agent into the work that is left there, the one on the
// cluster of the annotation counts.
func (a *inventoryAgent) hostedWork(addon *addonv1beta1.ManagedClusterAddOn) *workv1.ManifestWork {
	var first *workv1.ManifestWork
	for _, work := range worksBy(a.works, index.ManifestWorkByHostedAddon, addon.Namespace) {
		if manifests.IsDeployedFor(work, addon) && (first == nil || work.Namespace == configuration.WantedHost(addon)) {
			first = work
		}
	}
	return first
}

// location describes where a cluster's agent runs and should run.
func (a *inventoryAgent) location(
	addon *addonv1beta1.ManagedClusterAddOn, there manifests.Deployed,
) configuration.Location {
	at := configuration.Location{
		Cluster: addon.Namespace, Allowed: a.allowedRegistries,
		Deployed: there.HasAgent(), Runs: there.Host(), Host: a.host(addon),
	}
	if at.Host == at.Runs {
		at.Namespace = there.Namespace()
	}
	if its := a.addon(configuration.WantedHost(addon)); its != nil {
		at.HostsHost = configuration.WantedHost(its)
	}
	if at.Host == "" {
		at.GuestOf = func(namespace string) string { return a.guestIn(addon.Namespace, namespace) }
	} else if own := a.addon(at.Host); own != nil {
		if onHost, err := a.deployed(own); err == nil && onHost.Host() == "" {
			at.HostsOwn = onHost.Namespace()
		}
	}
	return at
}

// guestIn returns the cluster whose agent should run in a namespace of a hosting cluster,
// or "".
func (a *inventoryAgent) guestIn(host, namespace string) string {
	found, err := a.addons.ByIndex(indexAddonByHostedNamespace, namespace)
	if err != nil {
		return ""
	}
	for _, obj := range found {
		if guest, ok := obj.(*addonv1beta1.ManagedClusterAddOn); ok && a.host(guest) == host {
			return guest.Namespace
		}
	}
	return ""
}

// addon returns the cached addon of a cluster, or nil.
func (a *inventoryAgent) addon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	cached, ok, err := a.addons.GetByKey(queueKey(cluster))
	if err != nil || !ok {
		return nil
	}
	addon, _ := cached.(*addonv1beta1.ManagedClusterAddOn)
	return addon
}

// isManaged reports whether the framework may process an addon. If not, the condition
// ConfigurationApplied says why, and nothing is created or removed.
func (a *inventoryAgent) isManaged(addon *addonv1beta1.ManagedClusterAddOn) bool {
	if a.hosting {
		return true
	}
	refused := configuration.ValidateUnhosted(addon)
	if refused != nil {
		a.report(addon, configuration.Decision{Refused: refused}, nil)
	}
	return refused == nil
}

// guests returns the clusters whose agents run, or should run, on a cluster.
func (c *controllers) guests(host string) []string {
	var guests []string
	if found, err := c.addons.ByIndex(indexAddonByHost, host); err == nil {
		for _, obj := range found {
			if addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn); ok {
				guests = append(guests, addon.Namespace)
			}
		}
	}
	// The annotation may have changed since.
	if found, err := c.works.ByIndex(toolscache.NamespaceIndex, host); err == nil {
		for _, obj := range found {
			if work, ok := obj.(*workv1.ManifestWork); ok && ownwork.GuestOf(work) != "" {
				guests = append(guests, ownwork.GuestOf(work))
			}
		}
	}
	slices.Sort(guests)
	return slices.Compact(guests)
}

func (c *controllers) enqueueGuests(host string) {
	for _, guest := range c.guests(host) {
		c.enqueue(guest)
	}
}

// onHosting makes the framework reconcile a hosting cluster's own addon when it gets or
// loses a guest, and its guests when its own addon is deleted or becomes hosted: a
// namespace may have become free, or a cluster able to host.
func (c *controllers) onHosting() toolscache.ResourceEventHandler {
	guest := func(obj any) {
		if addon := addonIn(obj); addon != nil && configuration.WantedHost(addon) != "" {
			c.enqueue(configuration.WantedHost(addon))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, now := addonIn(before), addonIn(after)
			if old != nil && now != nil && configuration.WantedHost(old) != configuration.WantedHost(now) {
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
