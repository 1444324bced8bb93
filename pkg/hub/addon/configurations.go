package addon

import (
	"cmp"
	"slices"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	"open-cluster-management.io/addon-framework/pkg/index"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addoninformers "open-cluster-management.io/api/client/addon/informers/externalversions/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// keptConfigurations is how many judged configurations are kept.
const keptConfigurations = 1024

// indexAddonByConfiguration is the index of ManagedClusterAddOns by the configurations that
// they should have.
const indexAddonByConfiguration = "addonByConfiguration"

// configurations reads configurations of one kind from an informer, and judges each content
// once. The content is what the API server returns: the API's defaults may change it
// without a new generation.
type configurations struct {
	kind      kind
	indexer   toolscache.Store
	synced    toolscache.InformerSynced // whether all of them are in the indexer; nil if they always are
	judgeSpec func(spec map[string]any, judged *configuration)
	judged    *lru.Cache // of *configuration, by hash
}

func newConfigurations(indexer toolscache.Store) *configurations {
	return &configurations{
		kind: deploymentConfigKind(), indexer: indexer, judged: lru.New(keptConfigurations),
		judgeSpec: func(spec map[string]any, judged *configuration) {
			judged.overrides, judged.mistakes = judgeConfiguration(spec)
		},
	}
}

func newRevisions(indexer toolscache.Store, synced toolscache.InformerSynced) *configurations {
	return &configurations{
		kind: revisionKind(), indexer: indexer, synced: synced, judged: lru.New(keptConfigurations),
		judgeSpec: func(spec map[string]any, judged *configuration) {
			judged.values, judged.mistakes = judgeRevision(spec)
			revision, _, err := unstructured.NestedString(spec, "manifests")
			judged.unknownManifests = err == nil && !slices.Contains(manifests.Revisions(), revision)
		},
	}
}

// finder returns find, or nil as long as it may miss existing configurations.
func (c *configurations) finder() func(addonv1beta1.ConfigReferent) *configuration {
	if c.synced != nil && !c.synced() {
		return nil
	}
	return c.find
}

// find returns a configuration, or nil if it does not exist.
func (c *configurations) find(name addonv1beta1.ConfigReferent) *configuration {
	object, exists, err := c.indexer.GetByKey(nameOf(name))
	config, ok := object.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return nil
	}
	return c.judge(config)
}

// newest returns the most recently created configuration without a mistake, or nil.
func (c *configurations) newest() *configuration {
	var (
		newest *configuration
		last   *unstructured.Unstructured
	)
	for _, object := range c.indexer.List() {
		config, ok := object.(*unstructured.Unstructured)
		if !ok || last != nil && !createdBefore(last, config) {
			continue
		}
		if judged := c.judge(config); len(judged.mistakes) == 0 {
			newest, last = judged, config
		}
	}
	return newest
}

// createdBefore orders configurations of the same second by their names.
func createdBefore(one, another *unstructured.Unstructured) bool {
	return cmp.Or(one.GetCreationTimestamp().Compare(another.GetCreationTimestamp().Time),
		cmp.Compare(keyOf(one), keyOf(another))) < 0
}

func (c *configurations) judge(config *unstructured.Unstructured) *configuration {
	hash, err := utils.GetSpecHash(config)
	if err != nil {
		return malformed(err)
	}
	if judged, ok := c.judged.Get(hash); ok {
		return judged.(*configuration)
	}
	spec, _, err := unstructured.NestedMap(config.Object, "spec")
	if err != nil {
		return malformed(err)
	}
	judged := &configuration{hash: hash}
	c.judgeSpec(spec, judged)
	c.judged.Add(hash, judged)
	return judged
}

func keyOf(config *unstructured.Unstructured) string {
	return nameOf(addonv1beta1.ConfigReferent{Namespace: config.GetNamespace(), Name: config.GetName()})
}

func malformed(err error) *configuration {
	judged := &configuration{}
	judged.mistakes.add("spec", "%v", err)
	return judged
}

// trimConfiguration keeps a configuration's identity and spec.
func trimConfiguration(obj any) (any, error) {
	config, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	trimmed := &unstructured.Unstructured{Object: map[string]any{}}
	trimmed.SetGroupVersionKind(config.GroupVersionKind())
	trimmed.SetNamespace(config.GetNamespace())
	trimmed.SetName(config.GetName())
	trimmed.SetUID(config.GetUID())
	trimmed.SetResourceVersion(config.GetResourceVersion())
	trimmed.SetGeneration(config.GetGeneration())
	trimmed.SetCreationTimestamp(config.GetCreationTimestamp())
	if spec, ok := config.Object["spec"]; ok {
		trimmed.Object["spec"] = spec
	}
	return trimmed, nil
}

// indexOwnConfigurations maps configurations to the addons that name them themselves. For
// these, addon-framework must write the hash of the configuration into the status. For
// others it would write only the generation, which nobody reads, with a write per cluster
// and edit.
func indexOwnConfigurations(obj any) ([]string, error) {
	if addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn); !ok || !hasOwnConfiguration(addon) {
		return nil, nil
	}
	return index.IndexAddonByConfig(obj)
}

// ownConfigured provides the framework with an informer of the addons that name a
// configuration themselves.
type ownConfigured struct {
	addoninformers.ManagedClusterAddOnInformer
}

// Informer returns the addons' informer.
func (o ownConfigured) Informer() toolscache.SharedIndexInformer {
	return ownConfiguredInformer{o.ManagedClusterAddOnInformer.Informer()}
}

type ownConfiguredInformer struct {
	toolscache.SharedIndexInformer
}

// AddEventHandler adds a handler that receives only addons that name a configuration.
func (i ownConfiguredInformer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(toolscache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn)
			return ok && hasOwnConfiguration(addon)
		},
		Handler: handler,
	})
}

// onConfigurations enqueues the addons that a changed configuration concerns. After an
// edit, these are only those that should have the new content already; Open Cluster
// Management updates the others when their turn comes.
func (c *configurations) onConfigurations(
	addons toolscache.Indexer, queues ...workqueue.TypedRateLimitingInterface[string],
) toolscache.ResourceEventHandler {
	enqueue := func(config *unstructured.Unstructured, matters func(*addonv1beta1.ManagedClusterAddOn) bool) {
		key := c.kind.key(keyOf(config))
		found, err := addons.ByIndex(indexAddonByConfiguration, key)
		if err != nil {
			return // there is no such index: a mistake that every test would reveal
		}
		for _, obj := range found {
			addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn)
			if !ok || !matters(addon) {
				continue
			}
			for _, queue := range queues {
				queue.Add(queueKey(addon.Namespace))
			}
		}
	}
	toTheNewContent := func(config *unstructured.Unstructured) {
		hash := c.judge(config).hash
		enqueue(config, func(addon *addonv1beta1.ManagedClusterAddOn) bool {
			for _, desired := range c.kind.desired(addon) {
				if nameOf(desired.ConfigReferent) == keyOf(config) {
					return desired.SpecHash == hash
				}
			}
			return false
		})
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if config, ok := obj.(*unstructured.Unstructured); ok {
				toTheNewContent(config)
			}
		},
		UpdateFunc: func(before, after any) {
			old, wasOurs := before.(*unstructured.Unstructured)
			config, ok := after.(*unstructured.Unstructured)
			if ok && wasOurs && c.judge(old).hash != c.judge(config).hash {
				toTheNewContent(config)
			}
		},
		DeleteFunc: func(obj any) {
			if config, ok := kube.InEvent[*unstructured.Unstructured](obj); ok {
				enqueue(config, func(*addonv1beta1.ManagedClusterAddOn) bool { return true })
			}
		},
	}
}
