package addon

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// calm is how long a change waits before it is passed to the framework, with all that
// follow until then. When an addon is enabled, OCM's addon manager and the klusterlet write
// it at the same time: acting on each write would mostly end in conflicts.
const calm = 250 * time.Millisecond

// changes is an informer whose handlers receive an update only if it changed something that
// they read, and several within a short while only once. The framework reconciles a cluster
// for every event, and most events of an addon are about conditions that others write.
type changes[T object] struct {
	toolscache.SharedIndexInformer
	ctx     context.Context // ends the forwarding
	changed func(before, after T) bool
}

func (c changes[T]) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	pending := workqueue.NewTypedDelayingQueue[string]()
	context.AfterFunc(c.ctx, pending.ShutDown)
	go passOn(pending, c.GetIndexer(), handler)
	return c.SharedIndexInformer.AddEventHandler(forward(handler, func(before, after T) {
		if c.changed(before, after) {
			pending.AddAfter(toolscache.MetaObjectToName(after).String(), calm)
		}
	}))
}

// deletions is an informer whose handlers receive the object of every deletion.
type deletions[T object] struct{ toolscache.SharedIndexInformer }

func (d deletions[T]) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	update := func(before, after T) { handler.OnUpdate(before, after) }
	return d.SharedIndexInformer.AddEventHandler(forward(handler, update))
}

// object is what the events of an informer are about.
type object interface {
	comparable
	client.Object
}

// forward returns a handler that forwards additions and deletions of objects, and has update called
// for the rest. If a watch has missed a deletion, it forwards the last known state. Filters of
// addon-framework v1.3.0 take all they get for an object, and would end the manager by a panic.
func forward[T object](
	to toolscache.ResourceEventHandler, update func(before, after T),
) toolscache.ResourceEventHandler {
	var none T
	return kube.OnEvent(func(before, after T, initial bool) {
		switch none {
		case before:
			to.OnAdd(after, initial)
		case after:
			to.OnDelete(before)
		default:
			update(before, after)
		}
	})
}

// passOn passes the present state of objects to a handler. It skips deleted ones: the
// handler has received their deletion.
func passOn(
	keys workqueue.TypedInterface[string], objects toolscache.Indexer, handler toolscache.ResourceEventHandler,
) {
	for {
		key, ended := keys.Get()
		if ended {
			return
		}
		if object, exists, err := objects.GetByKey(key); err == nil && exists {
			handler.OnUpdate(object, object)
		}
		keys.Done(key)
	}
}

// source provides the framework with the objects of one kind.
type source[L any] struct {
	informer toolscache.SharedIndexInformer
	lister   func(toolscache.Indexer) L
}

func (s source[L]) Informer() toolscache.SharedIndexInformer { return s.informer }

func (s source[L]) Lister() L { return s.lister(s.informer.GetIndexer()) }

// sharedInformer returns the informer of a kind in the manager's cache.
func sharedInformer(
	ctx context.Context, shared cache.Cache, kind client.Object,
) (toolscache.SharedIndexInformer, error) {
	informer, err := shared.GetInformer(ctx, kind)
	if err != nil {
		return nil, err
	}
	full, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the cache has a %T of %T, which addon-framework cannot read", informer, kind)
	}
	return full, nil
}

type configurationExists func(of configuration.Kind, name addonv1beta1.ConfigReferent) bool

// ownConfigured is an informer of the addons that name a configuration themselves.
type ownConfigured struct {
	toolscache.SharedIndexInformer
}

func (i ownConfigured) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(toolscache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn)
			return ok && configuration.HasOwn(addon)
		},
		Handler: handler,
	})
}

type configs struct {
	factory    dynamicinformer.DynamicSharedInformerFactory
	supported  map[schema.GroupVersionResource]bool
	deployment toolscache.SharedIndexInformer
	revision   *revisionInformer
}

func newConfigs(client dynamic.Interface) (*configs, error) {
	c := &configs{
		factory:   dynamicinformer.NewDynamicSharedInformerFactory(client, noResync),
		supported: map[schema.GroupVersionResource]bool{},
	}
	for _, resource := range configuration.SupportedResources() {
		c.supported[resource] = true
		if err := c.factory.ForResource(resource).Informer().SetTransform(kube.Trimmed(configuration.Trim)); err != nil {
			return nil, err
		}
	}
	c.deployment = c.factory.ForResource(configuration.DeploymentConfigKind().GroupVersionResource).Informer()
	c.revision = &revisionInformer{
		SharedIndexInformer: c.factory.ForResource(configuration.RevisionKind().GroupVersionResource).Informer(),
	}
	return c, c.revision.SetWatchErrorHandlerWithContext(c.revision.onError)
}

// exists implements configurationExists.
func (c *configs) exists(of configuration.Kind, name addonv1beta1.ConfigReferent) bool {
	cached := c.factory.ForResource(of.GroupVersionResource).Informer().GetIndexer()
	_, exists, err := cached.GetByKey(configuration.NameOf(name))
	return err == nil && exists
}

// revisionInformer is the informer of the AgentRevisions. Their CustomResourceDefinition
// belongs to the chart and may be missing; those of all other kinds belong to Open Cluster
// Management.
type revisionInformer struct {
	toolscache.SharedIndexInformer
	refused atomic.Bool
}

// answered reports whether the AgentRevisions are in the cache, or the API server refused
// to list them. Listing is retried at least every half a minute.
func (r *revisionInformer) answered() bool { return r.refused.Load() || r.HasSynced() }

func (r *revisionInformer) onError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if r.HasSynced() || !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	r.refused.Store(true)
	utilruntime.HandleErrorWithContext(ctx, err,
		"Cannot read AgentRevisions, so agents that have one stay as they are; apply the chart's CRDs")
}

// frameworkConditions are the conditions of an addon that the framework reads and writes
// for this addon.
var frameworkConditions = []string{
	addonv1beta1.ManagedClusterAddOnRegistrationApplied,
	addonv1beta1.ManagedClusterAddOnManifestApplied,
	addonv1beta1.ManagedClusterAddOnHostingClusterValidity,
	addonv1beta1.ManagedClusterAddOnHostingManifestApplied,
	addonv1beta1.ManagedClusterAddOnHookManifestCompleted,
	addonv1beta1.ManagedClusterAddOnConditionAvailable,
}

// addonChanged reports whether an addon changed in anything but others' conditions and status
// fields that only others read. While a hash is about to follow, which causes a separate
// event, configurations do not count: acting on them, the framework would write into every
// addon that its manifests cannot be applied, and then that they are.
func (exists configurationExists) addonChanged(before, after *addonv1beta1.ManagedClusterAddOn) bool {
	for _, conditionType := range frameworkConditions {
		if kube.ConditionChanged(before.Status.Conditions, after.Status.Conditions, conditionType) {
			return true
		}
	}
	old, current := withoutForeignStatus(before), withoutForeignStatus(after)
	if exists.hashFollows(after) {
		current.Status.ConfigReferences = old.Status.ConfigReferences
	} else if configuration.IsConfigured(before) != configuration.IsConfigured(after) {
		return true
	}
	return !apiequality.Semantic.DeepEqual(old, current)
}

// hashFollows reports whether Open Cluster Management is about to write the hash of a
// configuration: it refers to a new one first without it, until the manager has written the
// hash into the ClusterManagementAddOn. The hash of a configuration that does not exist
// never follows. The hash of one that the addon names itself is written because of this
// very change.
func (exists configurationExists) hashFollows(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(configuration.SupportedKinds(), func(kind configuration.Kind) bool {
		return !kind.Named(addon) && slices.ContainsFunc(kind.Desired(addon),
			func(desired addonv1beta1.ConfigSpecHash) bool {
				return desired.SpecHash == "" && exists(kind, desired.ConfigReferent)
			})
	})
}

// withoutForeignStatus returns the addon without its resource version, the times of managed
// fields and the parts of its status that others write.
func withoutForeignStatus(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	rest := *addon
	rest.ResourceVersion = ""
	rest.ManagedFields = nil
	rest.Status.Conditions = nil
	rest.Status.ConfigReferences = nil
	for _, reference := range addon.Status.ConfigReferences {
		// The framework records the desired configuration in the work; the other fields
		// count the progress.
		rest.Status.ConfigReferences = append(rest.Status.ConfigReferences, addonv1beta1.ConfigReference{
			ConfigGroupResource: reference.ConfigGroupResource, DesiredConfig: reference.DesiredConfig,
		})
	}
	return &rest
}

func workChanged(before, after *workv1.ManifestWork) bool {
	old, current := *before, *after
	old.ResourceVersion, current.ResourceVersion = "", ""
	return !apiequality.Semantic.DeepEqual(&old, &current)
}

// addonTrimmer drops fields of addons that nothing reads, and shares what they repeat.
type addonTrimmer struct {
	owners     kube.Repeats[[]metav1.OwnerReference]
	supported  kube.Repeats[[]addonv1beta1.ConfigGroupResource]
	references kube.Repeats[[]addonv1beta1.ConfigReference]
	related    kube.Repeats[[]addonv1beta1.ObjectReference]
}

// trim keeps the conditions whole: the framework rewrites their list from the cache.
func (t *addonTrimmer) trim(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	addon.ManagedFields = nil
	status := &addon.Status
	// Decoding leaves spare capacity in every list.
	status.Conditions, status.Registrations = slices.Clone(status.Conditions), slices.Clone(status.Registrations)
	addon.OwnerReferences = t.owners.Of(addon.OwnerReferences)
	status.SupportedConfigs = t.supported.Of(status.SupportedConfigs)
	status.ConfigReferences = t.references.Of(status.ConfigReferences)
	status.RelatedObjects = t.related.Of(status.RelatedObjects)
	return addon
}
