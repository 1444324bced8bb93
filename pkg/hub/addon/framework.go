package addon

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/addonmanager"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	addoninformers "open-cluster-management.io/api/client/addon/informers/externalversions"
	clusterclient "open-cluster-management.io/api/client/cluster/clientset/versioned"
	clusterinformers "open-cluster-management.io/api/client/cluster/informers/externalversions"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workinformers "open-cluster-management.io/api/client/work/informers/externalversions"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// resync is how often the framework reconciles everything again.
const resync = 10 * time.Minute

// framework runs addon-framework while this process is the leader. Its informers are
// restricted to this addon and start only then, so a standby caches nothing.
type framework struct {
	cfg    *rest.Config
	opts   Options
	client client.Client
	live   client.Reader
}

// NeedLeaderElection keeps two managers from running the framework at the same time.
func (f *framework) NeedLeaderElection() bool { return true }

// Start runs until the context ends.
func (f *framework) Start(ctx context.Context) error {
	cached, err := f.newGrantCache()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cached.Start(ctx) }()
	template, err := newTemplate()
	if err != nil {
		return err
	}
	manager := addonmanager.NewBaseAddonManagerImpl(f.cfg)
	if err := manager.AddAgent(&inventoryAgent{
		opts:     f.opts,
		template: template,
		grants:   &grants{reader: cached, live: f.live, writer: f.client},
	}); err != nil {
		return err
	}
	if err := triggerOnGrantChanges(ctx, cached, manager); err != nil {
		return err
	}
	if err := f.startManager(ctx, manager); err != nil {
		return fmt.Errorf("starting addon-framework: %w", err)
	}
	return <-ended
}

// startManager starts the framework's controllers with informers restricted to this
// addon.
func (f *framework) startManager(ctx context.Context, manager *addonmanager.BaseAddonManagerImpl) error {
	kubeClient, err := kubernetes.NewForConfig(f.cfg)
	if err != nil {
		return err
	}
	addonClient, err := addonclient.NewForConfig(f.cfg)
	if err != nil {
		return err
	}
	clusterClient, err := clusterclient.NewForConfig(f.cfg)
	if err != nil {
		return err
	}
	workClient, err := workclient.NewForConfig(f.cfg)
	if err != nil {
		return err
	}

	// ClusterManagementAddOn and ManagedClusterAddOns have the same name.
	byName := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, contract.AddonName).String()
	}
	byLabel := func(options *metav1.ListOptions) {
		options.LabelSelector = labels.Set{addonv1beta1.AddonLabelKey: contract.AddonName}.String()
	}
	addons := addoninformers.NewSharedInformerFactoryWithOptions(addonClient, resync,
		addoninformers.WithTweakListOptions(byName), addoninformers.WithTransform(cache.TransformStripManagedFields()))
	clusters := clusterinformers.NewSharedInformerFactoryWithOptions(clusterClient, resync,
		clusterinformers.WithTransform(trimCluster))
	works := workinformers.NewSharedInformerFactoryWithOptions(workClient, resync,
		workinformers.WithTweakListOptions(byLabel), workinformers.WithTransform(trimWork))
	requests := kubeinformers.NewSharedInformerFactoryWithOptions(kubeClient, resync,
		kubeinformers.WithTweakListOptions(byLabel), kubeinformers.WithTransform(cache.TransformStripManagedFields()))

	if err := addIndexers(addons, works); err != nil {
		return err
	}
	manifestWorks := works.Work().V1().ManifestWorks()
	if err := manager.StartWithInformers(ctx, workClient, manifestWorks, requests, addons, clusters, nil); err != nil {
		return err
	}
	addons.Start(ctx.Done())
	clusters.Start(ctx.Done())
	works.Start(ctx.Done())
	requests.Start(ctx.Done())
	return nil
}

// addIndexers adds the indexes that the framework's own start function adds.
func addIndexers(addons addoninformers.SharedInformerFactory, works workinformers.SharedInformerFactory) error {
	if err := works.Work().V1().ManifestWorks().Informer().AddIndexers(toolscache.Indexers{
		index.ManifestWorkByAddon:           index.IndexManifestWorkByAddon,
		index.ManifestWorkByHostedAddon:     index.IndexManifestWorkByHostedAddon,
		index.ManifestWorkHookByHostedAddon: index.IndexManifestWorkHookByHostedAddon,
	}); err != nil {
		return err
	}
	if err := addons.Addon().V1beta1().ManagedClusterAddOns().Informer().AddIndexers(toolscache.Indexers{
		index.ManagedClusterAddonByNamespace: index.IndexManagedClusterAddonByNamespace,
		index.AddonByConfig:                  index.IndexAddonByConfig,
	}); err != nil {
		return err
	}
	return addons.Addon().V1beta1().ClusterManagementAddOns().Informer().AddIndexers(toolscache.Indexers{
		index.ClusterManagementAddonByConfig: index.IndexClusterManagementAddonByConfig,
	})
}

// newGrantCache returns a cache of the Roles and RoleBindings that this addon labelled.
func (f *framework) newGrantCache() (cache.Cache, error) {
	marked := cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{contract.LabelManagedBy: contract.ManagedBy}),
		Transform: cache.TransformStripManagedFields(),
	}
	return cache.New(f.cfg, cache.Options{
		Scheme:   f.client.Scheme(),
		Mapper:   f.client.RESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&rbacv1.Role{}: marked, &rbacv1.RoleBinding{}: marked},
	})
}

// triggerOnGrantChanges makes the framework reconcile an addon when its grants change:
// the framework does not watch what PermissionConfig creates.
func triggerOnGrantChanges(ctx context.Context, cached cache.Cache, manager *addonmanager.BaseAddonManagerImpl) error {
	trigger := func(obj any) {
		if stale, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = stale.Obj
		}
		if object, ok := obj.(client.Object); ok && object.GetName() == agentName {
			manager.Trigger(object.GetNamespace(), contract.AddonName)
		}
	}
	for _, kind := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		informer, err := cached.GetInformer(ctx, kind) // waits until it has synced
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, updated any) { trigger(updated) },
			DeleteFunc: trigger,
		}); err != nil {
			return err
		}
	}
	return nil
}

// trimCluster drops everything that neither the framework nor this package reads.
func trimCluster(obj any) (any, error) {
	cluster, ok := obj.(*clusterv1.ManagedCluster)
	if !ok {
		return obj, nil
	}
	cluster.ManagedFields = nil
	cluster.Spec = clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient}
	cluster.Status = clusterv1.ManagedClusterStatus{Conditions: cluster.Status.Conditions}
	return cluster, nil
}

// trimWork removes defaults that the API server set. The framework compares a
// ManifestWork with what it renders, which has no defaults; without this it would send
// a patch without effect for every ManifestWork each time the manager starts.
func trimWork(obj any) (any, error) {
	work, ok := obj.(*workv1.ManifestWork)
	if !ok {
		return obj, nil
	}
	work.ManagedFields = nil
	for i := range work.Spec.ManifestConfigs {
		if config := &work.Spec.ManifestConfigs[i]; config.FeedbackScrapeType == workv1.FeedbackPollType {
			config.FeedbackScrapeType = ""
		}
	}
	return work, nil
}
