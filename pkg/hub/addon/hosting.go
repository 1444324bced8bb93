package addon

import (
	"bytes"
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
)

const (
	// indexAddonByHost finds the addons of clusters whose agents are to run on another one
	// by that, and indexAddonByHostedNamespace by the namespace that such an agent has there.
	indexAddonByHost            = "addonByHost"
	indexAddonByHostedNamespace = "addonByHostedNamespace"

	// indexWorkByGuest finds ManifestWorks on hosting clusters by the cluster whose agent is
	// in them, whether they are being deleted or not.
	indexWorkByGuest = "workByGuest"
)

// hostIndexers are the indexes of addons whose agents other clusters host, or are to; the
// others are in none.
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
		indexAddonByHost: by(wantedHost),
		indexAddonByHostedNamespace: by(func(addon *addonv1beta1.ManagedClusterAddOn) string {
			if wantedHost(addon) == "" && !isHostedAddon(addon) {
				return ""
			}
			return hostedNamespace(addon.Namespace)
		}),
	}
}

// workIndexers are the framework's indexes of ManifestWorks, and indexWorkByGuest. The
// framework's own index functions believe labels, with which a cluster could make any
// ManifestWork in its namespace one of another cluster's addon: the framework would delete
// those of that name in the namespace of the other's host, and write there what is in it.
func workIndexers() toolscache.Indexers {
	by := func(key func(work *workv1.ManifestWork, name workName) string) toolscache.IndexFunc {
		return func(obj any) ([]string, error) {
			work, ok := obj.(*workv1.ManifestWork)
			if !ok {
				return nil, errors.New("not a ManifestWork")
			}
			if name, ok := readWorkName(work); ok {
				if cluster := key(work, name); cluster != "" {
					return []string{queueKey(cluster)}, nil
				}
			}
			return nil, nil
		}
	}
	onHost := func(cleanup bool) toolscache.IndexFunc {
		return by(func(work *workv1.ManifestWork, name workName) string {
			// One that is going says nothing about where the agent is to run, or how it is.
			if name.cleanup != cleanup || !work.DeletionTimestamp.IsZero() {
				return ""
			}
			return name.guest
		})
	}
	return toolscache.Indexers{
		index.ManifestWorkByAddon: by(func(work *workv1.ManifestWork, name workName) string {
			if name.guest != "" || name.cleanup {
				return ""
			}
			return work.Namespace
		}),
		index.ManifestWorkByHostedAddon:     onHost(false),
		index.ManifestWorkHookByHostedAddon: onHost(true),
		indexWorkByGuest:                    by(func(_ *workv1.ManifestWork, name workName) string { return name.guest }),
	}
}

// worksOnHost gives the framework, of an addon's ManifestWorks on hosting clusters, only
// those on the one that hosts its agent. One that is left on another cluster has the same
// name: the framework would delete what it has just written to the right one, and write it
// again, without end.
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

// GetIndexer returns the ManifestWorks that count.
func (i informerOnHost) GetIndexer() toolscache.Indexer {
	return indexerOnHost{i.SharedIndexInformer.GetIndexer(), i.agent}
}

type indexerOnHost struct {
	toolscache.Indexer
	agent *inventoryAgent
}

// ByIndex implements toolscache.Indexer. Of an agent that no cluster hosts, all are left to
// be deleted.
func (i indexerOnHost) ByIndex(name, key string) ([]any, error) {
	found, err := i.Indexer.ByIndex(name, key)
	if err != nil || len(found) == 0 || name != index.ManifestWorkByHostedAddon && name != index.ManifestWorkHookByHostedAddon {
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

// frameworkMode tells the framework where a cluster's agent runs. Once an agent is not
// hosted any more, the framework leaves one of the finalizers that it added for that, and
// would wait for a clean-up on the host when the addon is removed. So frameworkMode drops
// it from the copy of the addon that the framework is about to write.
func (a *inventoryAgent) frameworkMode(
	addon *addonv1beta1.ManagedClusterAddOn, _ *clusterv1.ManagedCluster,
) (string, string) {
	host := a.host(addon)
	if host != "" {
		return constants.InstallModeHosted, host
	}
	if isHostedAddon(addon) && !slices.ContainsFunc(a.worksFor(addon.Namespace), func(work *workv1.ManifestWork) bool {
		return isDeployedFor(work, addon)
	}) {
		addon.Finalizers = without(slices.Clone(addon.Finalizers), addonv1beta1.AddonHostingPreDeleteHookFinalizer)
	}
	return constants.InstallModeDefault, ""
}

// host is the cluster on which a cluster's agent runs, or is to run, if that is another one.
// One that is deployed stays there, whatever the annotation says by now: the framework
// would delete what is on the hosting cluster without a clean-up, and then wait for one for
// ever. The same holds for as long as what was deployed is being deleted.
func (a *inventoryAgent) host(addon *addonv1beta1.ManagedClusterAddOn) string {
	wanted, works := wantedHost(addon), a.worksFor(addon.Namespace)
	if wanted == "" && len(works) == 0 {
		return ""
	}
	if there, err := a.deployed(addon); err == nil && there.agent() != nil && !mayMove(addon, there.host()) {
		return there.host()
	}
	for _, work := range works {
		if !work.DeletionTimestamp.IsZero() && isDeployedFor(work, addon) {
			return work.Namespace
		}
	}
	if wanted == addon.Namespace {
		return "" // which is refused
	}
	return wanted
}

// worksFor are the ManifestWorks for the agent of a cluster that are, or were, on hosting
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
// If a cluster that hosted it once has put another agent into what is left there, that on
// the cluster of the annotation counts.
func (a *inventoryAgent) hostedWork(addon *addonv1beta1.ManagedClusterAddOn) *workv1.ManifestWork {
	var first *workv1.ManifestWork
	for _, work := range worksBy(a.works, index.ManifestWorkByHostedAddon, addon.Namespace) {
		if isDeployedFor(work, addon) && (first == nil || work.Namespace == wantedHost(addon)) {
			first = work
		}
	}
	return first
}

// isDeployedFor reports whether a ManifestWork on a hosting cluster has the agent of this
// installation of an addon. It has no owner, because it is in another namespace.
func isDeployedFor(work *workv1.ManifestWork, addon *addonv1beta1.ManagedClusterAddOn) bool {
	there := deployed{work}
	agent := there.agent()
	return agent != nil && there.namespace() == hostedNamespace(addon.Namespace) &&
		bytes.Contains(agent.Raw, []byte(`"--addon-uid=`+string(addon.UID)+`"`))
}

// place says where a cluster's agent is to run.
func (a *inventoryAgent) place(addon *addonv1beta1.ManagedClusterAddOn, there deployed) place {
	at := place{cluster: addon.Namespace, host: a.host(addon), allowed: a.allowedRegistries}
	if at.host == there.host() {
		at.namespace = there.namespace()
	}
	if at.host == "" {
		at.guestOf = func(namespace string) string { return a.guestIn(addon.Namespace, namespace) }
	} else if own := a.addon(at.host); own != nil {
		if onHost, err := a.deployed(own); err == nil && onHost.host() == "" {
			at.hostsOwn = onHost.namespace()
		}
	}
	return at
}

// guestIn is the cluster whose agent is to run in a namespace of a hosting cluster, or "".
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

// addon returns the addon of a cluster as it is cached, or nil.
func (a *inventoryAgent) addon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	cached, ok, err := a.addons.GetByKey(queueKey(cluster))
	if err != nil || !ok {
		return nil
	}
	addon, _ := cached.(*addonv1beta1.ManagedClusterAddOn)
	return addon
}

// refuseHost returns why a cluster's agent cannot run where it is to, or nil.
func (a *inventoryAgent) refuseHost(addon *addonv1beta1.ManagedClusterAddOn, there deployed) *refusal {
	deployed := there.agent() != nil
	if refused := judgeHost(addon, deployed, there.host()); refused != nil || deployed && !mayMove(addon, there.host()) {
		return refused
	}
	if host := wantedHost(addon); host != "" {
		if its := a.addon(host); its != nil && wantedHost(its) != "" {
			return refuse(contract.ReasonHostingRefused,
				"Cluster %s cannot host the agent: its own runs on cluster %s; name another one in the annotation %s",
				host, wantedHost(its), addonv1beta1.HostingClusterNameAnnotationKey)
		}
	}
	return nil
}

// guests are the clusters whose agents run, or are to run, on a cluster.
func (c *controllers) guests(host string) []string {
	var guests []string
	if found, err := c.addons.ByIndex(indexAddonByHost, host); err == nil {
		for _, obj := range found {
			if addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn); ok {
				guests = append(guests, addon.Namespace)
			}
		}
	}
	// The annotation may say something else by now.
	if found, err := c.works.ByIndex(toolscache.NamespaceIndex, host); err == nil {
		for _, obj := range found {
			if work, ok := obj.(*workv1.ManifestWork); ok && guestOf(work) != "" {
				guests = append(guests, guestOf(work))
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

// onHosting makes the framework look again at a hosting cluster's own addon when it gets or
// loses a guest, and at the guests when its own addon goes or becomes hosted: a namespace
// may have become free, and a cluster one that can host.
func (c *controllers) onHosting() toolscache.ResourceEventHandler {
	guest := func(obj any) {
		if addon := addonIn(obj); addon != nil && wantedHost(addon) != "" {
			c.enqueue(wantedHost(addon))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, now := addonIn(before), addonIn(after)
			if old != nil && now != nil && wantedHost(old) != wantedHost(now) {
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

// addonIn returns the addon of this kind that an event is about, or nil.
func addonIn(obj any) *addonv1beta1.ManagedClusterAddOn {
	if addon, ok := inEvent[*addonv1beta1.ManagedClusterAddOn](obj); ok && addon.Name == contract.AddonName {
		return addon
	}
	return nil
}
