package addon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/addonconfig"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/agentdeploy"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/cmaconfig"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/registration"
	"open-cluster-management.io/addon-framework/pkg/agent"
	"open-cluster-management.io/addon-framework/pkg/index"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	addonlisters "open-cluster-management.io/api/client/addon/listers/addon/v1beta1"
	clusterlisters "open-cluster-management.io/api/client/cluster/listers/cluster/v1"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/sdk-go/pkg/basecontroller/factory"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

const (
	// noResync: a resync would do work for every cluster without an event.
	noResync = 0

	// retryAtLeast bounds the wait before a retry. The framework's own queues wait for up
	// to 17 minutes.
	retryAtLeast = time.Minute

	// conflictAtLeast and conflictAtMost bound the wait after a conflict with another
	// writer.
	conflictAtLeast = time.Second
	conflictAtMost  = 30 * time.Second

	// reinstallRecheck is how soon to ask again whether a deleted addon is about to be created
	// again: no event of the addon announces that.
	reinstallRecheck = time.Second

	// frameworkWorkers is how many clusters each of the framework's controllers processes
	// at a time. They mostly wait for the API server.
	frameworkWorkers = 4
)

// The framework compares ManifestWorks by reflection, which compares manifests byte by
// byte: that took a fifth of the CPU time of a start. The result stays the same.
func init() { utilruntime.Must(apiequality.Semantic.AddFunc(bytes.Equal)) }

// framework runs addon-framework while this process is the leader. It reads addons and
// clusters from the manager's cache, so that each of their events is decoded once. Its
// informers of ManifestWorks, configurations and grants start only then, so a standby
// caches none of them.
type framework struct {
	cfg      *rest.Config
	opts     Options
	shared   cache.Cache
	client   client.Client
	live     client.Reader
	outcomes *configuration.Outcomes
}

// NeedLeaderElection keeps two managers from running the framework at the same time.
func (f *framework) NeedLeaderElection() bool { return true }

func (f *framework) Start(ctx context.Context) error {
	cached, err := f.newGrantCache()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cached.Start(ctx) }()
	controllers, err := f.newControllers(ctx, &grants{reader: cached, live: f.live, writer: f.client})
	if err == nil {
		err = triggerOnGrantChanges(ctx, cached, controllers.registration.SyncContext().Queue())
	}
	switch {
	case ctx.Err() != nil: // while it waited for a cache
	case err != nil:
		return fmt.Errorf("preparing addon-framework: %w", err)
	default:
		controllers.start(ctx)
	}
	return <-ended
}

// controllers are the framework's controllers that this addon needs.
//
// The framework's own manager would run more of them: an approver, which Approver replaces,
// a signer for custom signers, which this addon does not use, and a migration of
// ClusterManagementAddOns of a kind that the chart never created.
type controllers struct {
	observed     observed
	registration factory.Controller
	deploy       factory.Controller

	// hashes write the hashes of configurations, by which Open Cluster Management notices a
	// change: into the status of the ClusterManagementAddOn, and of the addons that name a
	// configuration themselves.
	hashes []factory.Controller

	informers []starter
	synced    []toolscache.InformerSynced // of these and of the manager's cache, without revisions
	revisions *revisionInformer
}

type starter interface{ Start(stop <-chan struct{}) }

// newControllers returns the controllers with informers restricted to this addon.
func (f *framework) newControllers(ctx context.Context, grants *grants) (*controllers, error) {
	addonClient, err := addonclient.NewForConfig(f.cfg)
	if err != nil {
		return nil, err
	}
	workClient, err := workclient.NewForConfig(f.cfg)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(f.cfg)
	if err != nil {
		return nil, err
	}
	renderers, err := manifests.NewRenderers()
	if err != nil {
		return nil, err
	}
	configs, err := newConfigs(dynamicClient)
	if err != nil {
		return nil, err
	}
	sharedDefinitions, err := sharedInformer(ctx, f.shared, &addonv1beta1.ClusterManagementAddOn{})
	if err != nil {
		return nil, err
	}
	sharedClusters, err := sharedInformer(ctx, f.shared, &clusterv1.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	sharedAddons, err := sharedInformer(ctx, f.shared, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil {
		return nil, err
	}
	workInformers, joined := worksOf(workClient, f.opts.Release.HostedAgents)
	if err := addIndexers(sharedAddons, sharedDefinitions, joined); err != nil {
		return nil, err
	}
	definitions := source[addonlisters.ClusterManagementAddOnLister]{
		deletions[*addonv1beta1.ClusterManagementAddOn]{sharedDefinitions}, addonlisters.NewClusterManagementAddOnLister,
	}
	clusters := source[clusterlisters.ManagedClusterLister]{
		deletions[*clusterv1.ManagedCluster]{sharedClusters}, clusterlisters.NewManagedClusterLister,
	}
	addons := source[addonlisters.ManagedClusterAddOnLister]{changes[*addonv1beta1.ManagedClusterAddOn]{
		sharedAddons, ctx, configurationExists(configs.exists).addonChanged,
	}, addonlisters.NewManagedClusterAddOnLister}
	works := source[worklisters.ManifestWorkLister]{
		changes[*workv1.ManifestWork]{joined, ctx, workChanged}, worklisters.NewManifestWorkLister,
	}
	sources := configuration.Sources{
		Definitions:       definitions.Lister(),
		DeploymentConfigs: configuration.NewDeploymentConfigs(configs.deployment.GetIndexer()),
		Revisions:         configuration.NewRevisions(configs.revision.GetIndexer(), configs.revision.HasSynced),
	}
	seen := observed{
		addons: sharedAddons.GetIndexer(), works: joined.GetIndexer(), sources: sources,
		allowedRegistries: f.opts.AllowedRegistries,
	}
	onHost, own := works, addons
	onHost.informer, own.informer = informerOnHost{works.informer, seen}, ownConfigured{addons.informer}
	addonAgent := &inventoryAgent{
		observed: seen, renderers: renderers, grants: grants, outcomes: f.outcomes,
		hosting: f.opts.Release.HostedAgents, reinstalls: f.opts.Reinstalls,
	}
	addonAgent.options = addonAgent.agentOptions()
	agents := map[string]agent.AgentAddon{contract.AddonName: addonAgent}
	c := &controllers{
		observed: seen,
		registration: registration.NewAddonRegistrationController(
			addonClient, clusters, addons, agents, addonAgent.isManaged),
		deploy: agentdeploy.NewAddonDeployController(
			workWriter{workClient, works.Lister(), seen, f.live}, addonClient, clusters, addons, onHost, agents,
			addonAgent.isManaged),
		hashes: []factory.Controller{
			cmaconfig.NewCMAConfigController(
				addonClient, definitions, configs.factory, configs.supported, utils.FilterByAddonName(agents)),
			addonconfig.NewAddonConfigController(addonClient, own, definitions, configs.factory,
				configs.supported, utils.FilterByAddonName(agents)),
		},
		informers: append(workInformers, configs.factory),
		synced: []toolscache.InformerSynced{
			sharedAddons.HasSynced, sharedDefinitions.HasSynced, sharedClusters.HasSynced, joined.HasSynced,
			configs.deployment.HasSynced, configs.revision.answered,
		},
		revisions: configs.revision,
	}
	addonAgent.askAgain = func(cluster string) {
		c.deploy.SyncContext().Queue().AddAfter(queueKey(cluster), reinstallRecheck)
	}
	for _, on := range []struct {
		events  toolscache.SharedIndexInformer
		handler toolscache.ResourceEventHandler
	}{
		{clusters.informer, c.onClusters()},
		{sharedAddons, f.onGoneAddons()},
		{sharedAddons, c.onHosting()},
		{configs.deployment, sources.DeploymentConfigs.Handler(seen.addons, c.enqueue)},
		{configs.revision, sources.Revisions.Handler(seen.addons, c.enqueue)},
	} {
		if _, err := on.events.AddEventHandler(on.handler); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// perCluster returns those with one key for each cluster's addon.
func (c *controllers) perCluster() []factory.Controller {
	return []factory.Controller{c.registration, c.deploy}
}

func (c *controllers) all() []factory.Controller { return append(c.perCluster(), c.hashes...) }

func (c *controllers) start(ctx context.Context) {
	for _, informers := range c.informers {
		informers.Start(ctx.Done())
	}
	go c.run(ctx)
	go func() {
		<-ctx.Done()
		for _, controller := range c.all() {
			controller.SyncContext().Queue().ShutDown()
		}
	}()
	go wait.UntilWithContext(ctx, func(context.Context) {
		for _, controller := range c.all() {
			retryFailed(controller.SyncContext().Queue(), append(c.observed.addons.ListKeys(), contract.AddonName))
		}
	}, retryAtLeast)
}

// run runs the controllers once their caches have synced. If AgentRevisions are not served,
// the controllers for each cluster start without them: deployed agents stay as they are,
// and addons can be removed. The others would consider every revision missing and erase its
// hash.
func (c *controllers) run(ctx context.Context) {
	if !toolscache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return // the context has ended
	}
	late := !c.revisions.HasSynced()
	startWork(ctx, c.perCluster())
	if !toolscache.WaitForCacheSync(ctx.Done(), c.revisions.HasSynced) {
		return
	}
	if late {
		log.FromContext(ctx).Info("The hub serves AgentRevisions now")
		for _, controller := range c.perCluster() {
			for _, key := range c.observed.addons.ListKeys() {
				controller.SyncContext().Queue().Add(key)
			}
		}
	}
	startWork(ctx, c.hashes)
}

func startWork(ctx context.Context, controllers []factory.Controller) {
	for _, controller := range controllers {
		work := newWork(controller)
		for range frameworkWorkers {
			go work.process(ctx)
		}
	}
}

// work processes a controller's queue. The controller's own Run would log items that wait for
// a configuration, and retry them again and again: in a large fleet, one error in one
// configuration would keep the manager busy.
type work struct {
	controller factory.Controller

	// conflicts determines how long to wait after a conflict with another writer. Until the
	// cache has caught up, every attempt fails again, and costs as much: that takes seconds
	// on a busy hub, and minutes where each event passes a conversion webhook (package
	// stored).
	conflicts workqueue.TypedRateLimiter[string]
}

func newWork(controller factory.Controller) *work {
	return &work{
		controller: controller,
		conflicts:  workqueue.NewTypedItemExponentialFailureRateLimiter[string](conflictAtLeast, conflictAtMost),
	}
}

func (w *work) process(ctx context.Context) {
	queue := w.controller.SyncContext().Queue()
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		w.finish(ctx, key, w.controller.Sync(ctx, w.controller.SyncContext(), key))
		queue.Done(key)
	}
}

func (w *work) finish(ctx context.Context, key string, err error) {
	queue := w.controller.SyncContext().Queue()
	failed := utilerrors.FilterOut(err, func(err error) bool { return errors.Is(err, configuration.ErrHeld) })
	if failed == nil {
		queue.Forget(key)
		w.conflicts.Forget(key)
		return
	}
	if utilerrors.FilterOut(failed, apierrors.IsConflict) == nil {
		log.FromContext(ctx).V(1).Info("The object has changed since the cache saw it",
			"controller", w.controller.Name(), "key", key, "reason", failed.Error())
		queue.Forget(key)
		queue.AddAfter(key, w.conflicts.When(key))
		return
	}
	utilruntime.HandleErrorWithContext(ctx, failed, "Failed to sync", "controller", w.controller.Name(), "key", key)
	queue.AddRateLimited(key)
}

// retryFailed enqueues those of the keys that wait for a retry.
func retryFailed(queue workqueue.TypedRateLimitingInterface[string], keys []string) {
	for _, key := range keys {
		if queue.NumRequeues(key) > 0 {
			queue.Add(key)
		}
	}
}

// queueKey is the key of a cluster's addon in the queues of the framework.
func queueKey(cluster string) string { return cluster + "/" + contract.AddonName }

// indexOwnConfigurations maps configurations to the addons that name them themselves. For
// these, addon-framework must write the hash of the configuration into the status. For others
// it would write only the generation, which nothing reads, with a write per cluster and edit.
func indexOwnConfigurations(obj any) ([]string, error) {
	if addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn); !ok || !configuration.HasOwn(addon) {
		return nil, nil
	}
	return index.IndexAddonByConfig(obj)
}

// addIndexers adds the indexes that the framework's controllers and this package use.
func addIndexers(addons, definitions, works toolscache.SharedIndexInformer) error {
	if err := works.AddIndexers(workIndexers()); err != nil {
		return err
	}
	if err := definitions.AddIndexers(toolscache.Indexers{
		index.ClusterManagementAddonByConfig: index.IndexClusterManagementAddonByConfig,
	}); err != nil {
		return err
	}
	if err := addons.AddIndexers(hostIndexers()); err != nil {
		return err
	}
	return addons.AddIndexers(toolscache.Indexers{
		index.ManagedClusterAddonByNamespace:    index.IndexManagedClusterAddonByNamespace,
		index.AddonByConfig:                     indexOwnConfigurations,
		configuration.IndexAddonByConfiguration: index.IndexAddonByConfig,
	})
}
