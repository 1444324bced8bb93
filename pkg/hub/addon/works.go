package addon

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workfactories "open-cluster-management.io/api/client/work/informers/externalversions"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// worksOf returns the informer of this addon's ManifestWorks and what starts it. Without
// hosted agents there is an informer for each name, and no other ManifestWork of the hub is
// read. Those of hosted agents are named after their clusters.
func worksOf(works workclient.Interface, hosting bool) (factories []starter, joined joinedInformer) {
	selections := []metav1.ListOptions{{
		LabelSelector: labels.Set{addonv1beta1.AddonLabelKey: contract.AddonName}.String(),
	}}
	if !hosting {
		selections = nil
		for _, name := range ownwork.Names() {
			selections = append(selections, metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
			})
		}
	}
	trimmer := manifests.NewWorkTrimmer()
	for _, selected := range selections {
		factory := workfactories.NewSharedInformerFactoryWithOptions(works, noResync,
			workfactories.WithTweakListOptions(func(options *metav1.ListOptions) {
				options.LabelSelector, options.FieldSelector = selected.LabelSelector, selected.FieldSelector
			}),
			workfactories.WithTransform(kube.Trimmed(trimmer.Trim)))
		factories = append(factories, factory)
		joined.all = append(joined.all, factory.Work().V1().ManifestWorks().Informer())
	}
	joined.SharedIndexInformer = joined.all[0]
	return factories, joined
}

// joinedInformer is an informer of different ManifestWorks that the framework uses like one,
// with the methods that the framework and this package use.
type joinedInformer struct {
	toolscache.SharedIndexInformer
	all []toolscache.SharedIndexInformer
}

// AddEventHandler adds a handler of events of all. It returns the last registration.
func (i joinedInformer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (registration toolscache.ResourceEventHandlerRegistration, err error) {
	for _, informer := range i.all {
		if registration, err = informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	return registration, nil
}

func (i joinedInformer) HasSynced() bool {
	return !slices.ContainsFunc(i.all, func(informer toolscache.SharedIndexInformer) bool { return !informer.HasSynced() })
}

func (i joinedInformer) AddIndexers(indexers toolscache.Indexers) error {
	for _, informer := range i.all {
		if err := informer.AddIndexers(indexers); err != nil {
			return err
		}
	}
	return nil
}

func (i joinedInformer) GetIndexer() toolscache.Indexer {
	all := make([]toolscache.Indexer, len(i.all))
	for n, informer := range i.all {
		all[n] = informer.GetIndexer()
	}
	return joinedIndexer{all[0], all}
}

type joinedIndexer struct {
	toolscache.Indexer
	all []toolscache.Indexer
}

// GetByKey implements toolscache.Indexer.
func (i joinedIndexer) GetByKey(key string) (item any, exists bool, err error) {
	for _, indexer := range i.all {
		if item, exists, err = indexer.GetByKey(key); exists || err != nil {
			return item, exists, err
		}
	}
	return nil, false, nil
}

// ByIndex implements toolscache.Indexer.
func (i joinedIndexer) ByIndex(name, key string) ([]any, error) {
	var found []any
	for _, indexer := range i.all {
		items, err := indexer.ByIndex(name, key)
		if err != nil {
			return nil, err
		}
		found = append(found, items...)
	}
	return found, nil
}

// informerOnHost restricts the framework, among an addon's ManifestWorks on hosting clusters,
// to those on the cluster that hosts its agent. One left on another cluster has the same
// name: the framework would delete what it has just written to the right one, and write it
// again, endlessly.
type informerOnHost struct {
	toolscache.SharedIndexInformer
	observed observed
}

// GetIndexer returns the ManifestWorks of the right host.
func (i informerOnHost) GetIndexer() toolscache.Indexer {
	return indexerOnHost{i.SharedIndexInformer.GetIndexer(), i.observed}
}

type indexerOnHost struct {
	toolscache.Indexer
	observed observed
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
	addon := i.observed.addon(cluster)
	if addon == nil {
		return found, nil
	}
	host := i.observed.host(addon)
	if host == "" {
		return found, nil
	}
	return slices.DeleteFunc(slices.Clone(found), func(obj any) bool {
		work, ok := obj.(*workv1.ManifestWork)
		return ok && work.Namespace != host
	}), nil
}
