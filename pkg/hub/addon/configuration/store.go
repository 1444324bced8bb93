package configuration

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// keptConfigurations is how many validated configurations are kept.
const keptConfigurations = 1024

// IndexAddonByConfiguration is the index of ManagedClusterAddOns by the configurations that
// they should have.
const IndexAddonByConfiguration = "addonByConfiguration"

// Store reads configurations of one kind from an informer, and validates each content
// once. The content is what the API server returns: the API's defaults may change it
// without a new generation.
type Store struct {
	kind     Kind
	indexer  toolscache.Store
	synced   toolscache.InformerSynced // whether all of them are in the indexer; nil if they always are
	validate func(spec map[string]any, result *configuration)
	kept     *lru.Cache // of *configuration, by hash
}

// NewDeploymentConfigs returns those of AddOnDeploymentConfigs.
func NewDeploymentConfigs(indexer toolscache.Store) *Store {
	return &Store{
		kind: DeploymentConfigKind(), indexer: indexer, kept: lru.New(keptConfigurations),
		validate: func(spec map[string]any, result *configuration) {
			result.overrides, result.errors = validateConfiguration(spec)
		},
	}
}

// NewRevisions returns those of AgentRevisions.
func NewRevisions(indexer toolscache.Store, synced toolscache.InformerSynced) *Store {
	return &Store{
		kind: RevisionKind(), indexer: indexer, synced: synced, kept: lru.New(keptConfigurations),
		validate: func(spec map[string]any, result *configuration) {
			result.values, result.errors = validateRevision(spec)
			revision, _, err := unstructured.NestedString(spec, "manifests")
			result.unknownManifests = err == nil && !slices.Contains(manifests.Revisions(), revision)
		},
	}
}

// finder returns find, or nil while it may miss existing configurations.
func (c *Store) finder() func(addonv1beta1.ConfigReferent) *configuration {
	if c.synced != nil && !c.synced() {
		return nil
	}
	return c.find
}

// find returns a configuration, or nil if it does not exist.
func (c *Store) find(name addonv1beta1.ConfigReferent) *configuration {
	object, exists, err := c.indexer.GetByKey(NameOf(name))
	config, ok := object.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return nil
	}
	return c.validated(config)
}

// ofAll returns the AgentRevision of all clusters, if it has no error, or nil.
func (c *Store) ofAll(definition *addonv1beta1.ClusterManagementAddOn) *configuration {
	if definition == nil {
		return nil
	}
	for _, config := range definition.Spec.DefaultConfigs {
		if !c.kind.is(config.ConfigGroupResource) {
			continue
		}
		if found := c.find(config.ConfigReferent); found != nil && len(found.errors) == 0 {
			return found
		}
	}
	return nil
}

// newest returns the most recently created configuration without an error, or nil.
func (c *Store) newest() *configuration {
	var (
		newest *configuration
		last   *unstructured.Unstructured
	)
	for _, object := range c.indexer.List() {
		config, ok := object.(*unstructured.Unstructured)
		if !ok || last != nil && !createdBefore(last, config) {
			continue
		}
		if validated := c.validated(config); len(validated.errors) == 0 {
			newest, last = validated, config
		}
	}
	return newest
}

// createdBefore orders configurations of the same second by their names.
func createdBefore(one, another *unstructured.Unstructured) bool {
	return cmp.Or(one.GetCreationTimestamp().Compare(another.GetCreationTimestamp().Time),
		cmp.Compare(keyOf(one), keyOf(another))) < 0
}

func (c *Store) validated(config *unstructured.Unstructured) *configuration {
	hash, err := utils.GetSpecHash(config)
	if err != nil {
		return malformed(err)
	}
	if kept, ok := c.kept.Get(hash); ok {
		return kept.(*configuration)
	}
	spec, _, err := unstructured.NestedMap(config.Object, "spec")
	if err != nil {
		return malformed(err)
	}
	result := &configuration{hash: hash}
	c.validate(spec, result)
	c.kept.Add(hash, result)
	return result
}

func keyOf(config *unstructured.Unstructured) string {
	return NameOf(addonv1beta1.ConfigReferent{Namespace: config.GetNamespace(), Name: config.GetName()})
}

func malformed(err error) *configuration {
	result := &configuration{}
	result.errors.add("spec", "%v", err)
	return result
}

// Trim keeps a configuration's identity and spec.
func Trim(config *unstructured.Unstructured) *unstructured.Unstructured {
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
	return trimmed
}

// Handler returns a handler that enqueues the clusters whose addons a changed configuration
// concerns; addons have IndexAddonByConfiguration. After an edit, these are only those that
// should have the new content already; Open Cluster Management updates the others when their
// turn comes.
func (c *Store) Handler(addons toolscache.Indexer, enqueue func(cluster string)) toolscache.ResourceEventHandler {
	enqueueAddons := func(config *unstructured.Unstructured, matters func(*addonv1beta1.ManagedClusterAddOn) bool) {
		found, err := addons.ByIndex(IndexAddonByConfiguration, c.kind.key(keyOf(config)))
		if err != nil {
			return // there is no such index: a bug that every test would reveal
		}
		for _, obj := range found {
			if addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn); ok && matters(addon) {
				enqueue(addon.Namespace)
			}
		}
	}
	toTheNewContent := func(config *unstructured.Unstructured) {
		hash := c.validated(config).hash
		enqueueAddons(config, func(addon *addonv1beta1.ManagedClusterAddOn) bool {
			for _, desired := range c.kind.Desired(addon) {
				if NameOf(desired.ConfigReferent) == keyOf(config) {
					return desired.SpecHash == hash
				}
			}
			return false
		})
	}
	return kube.OnEvent(func(before, after *unstructured.Unstructured, _ bool) {
		switch {
		case after == nil:
			enqueueAddons(before, func(*addonv1beta1.ManagedClusterAddOn) bool { return true })
		case before == nil, c.validated(before).hash != c.validated(after).hash:
			toTheNewContent(after)
		}
	})
}
