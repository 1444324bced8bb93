package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/connect"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
)

var (
	_ multicluster.Provider         = &provider{}
	_ multicluster.ProviderRunnable = &provider{}
)

// syncTimeout is how long a cluster's caches may take to sync. A silent cluster delays no
// other meanwhile.
const syncTimeout = 30 * time.Second

// provider engages the clusters of the ClusterProfiles in a namespace. It engages a cluster
// again only when its profile has another server, CA, proxy or login: profiles are written
// for many other reasons.
type provider struct {
	hub       client.Client // reads profiles from the cache
	providers connect.Providers
	options   []cluster.Option
	warm      []client.Object // whose caches sync before anything starts
	meters    *meters

	started chan struct{} // closed once the next two are set
	ctx     context.Context
	aware   multicluster.Aware

	mu      sync.Mutex
	engaged map[multicluster.ClusterName]engagement
	indexes []index
}

type engagement struct {
	cluster.Cluster
	fingerprint string
	end         context.CancelFunc
}

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func newProvider(
	providers connect.Providers, meters *meters, warm []client.Object, options ...cluster.Option,
) *provider {
	return &provider{
		providers: providers, options: options, warm: warm, meters: meters,
		started: make(chan struct{}), engaged: map[multicluster.ClusterName]engagement{},
	}
}

// watch makes mgr call Reconcile for every ClusterProfile it caches.
func (p *provider) watch(mgr ctrl.Manager) error {
	p.hub = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterprofiles").
		For(&inventoryv1alpha1.ClusterProfile{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(p)
}

// Start lets clusters be engaged until ctx ends.
func (p *provider) Start(ctx context.Context, aware multicluster.Aware) error {
	p.ctx, p.aware = ctx, aware
	close(p.started)
	<-ctx.Done()
	return nil
}

// Get returns an engaged cluster.
func (p *provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if found, ok := p.get(name); ok {
		return found.Cluster, nil
	}
	return nil, multicluster.ErrClusterNotFound
}

// IndexField indexes a field in all present and future clusters.
func (p *provider) IndexField(
	ctx context.Context, object client.Object, field string, extract client.IndexerFunc,
) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexes = append(p.indexes, index{object, field, extract})
	var problems error
	for _, found := range p.engaged {
		problems = errors.Join(problems, found.GetFieldIndexer().IndexField(ctx, object, field, extract))
	}
	return problems
}

// Reconcile engages or disengages the cluster of a profile.
func (p *provider) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	select {
	case <-ctx.Done():
		return ctrl.Result{}, ctx.Err()
	case <-p.started:
	}
	name := multicluster.ClusterName(req.String())
	profile := &inventoryv1alpha1.ClusterProfile{}
	if err := p.hub.Get(ctx, req.NamespacedName, profile); apierrors.IsNotFound(err) ||
		err == nil && profile.DeletionTimestamp != nil {
		p.disengage(name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	current, engaged := p.get(name)
	if !engaged && !connect.Ready(profile) {
		return ctrl.Result{}, nil // that it becomes ready is an event
	}
	config, err := p.providers.Config(profile)
	if err != nil {
		return ctrl.Result{}, err
	}
	fingerprint, err := connect.Fingerprint(config)
	if err != nil || engaged && fingerprint == current.fingerprint {
		return ctrl.Result{}, err
	}
	p.disengage(name)
	return ctrl.Result{}, p.engage(ctx, name, config, fingerprint)
}

func (p *provider) engage(
	ctx context.Context, name multicluster.ClusterName, config *rest.Config, fingerprint string,
) error {
	meter := p.meters.of(name.String())
	httpClient, err := meter.client(config)
	if err != nil {
		return err
	}
	made, err := cluster.New(config, append(p.options, func(o *cluster.Options) { o.HTTPClient = httpClient })...)
	if err != nil {
		return err
	}
	clusterCtx, end := context.WithCancel(p.ctx) // a cluster outlives the event that engages it
	if err := p.start(clusterCtx, ctx, name, made); err != nil {
		end()
		return fmt.Errorf("engage %s: %w", name, err)
	}
	p.mu.Lock()
	p.engaged[name] = engagement{Cluster: made, fingerprint: fingerprint, end: end}
	p.mu.Unlock()
	meter.count(func(c *status.Cluster) { c.Engagements++; c.Engaged = true })
	if err := p.aware.Engage(clusterCtx, name, made); err != nil { //nolint:contextcheck // as above
		p.disengage(name)
		return err
	}
	return nil
}

// start starts a cluster's caches and waits until they have synced: otherwise the
// controllers, once they know the cluster, would wait forever and delay all others.
func (p *provider) start(clusterCtx, ctx context.Context, name multicluster.ClusterName, made cluster.Cluster) error {
	p.mu.Lock()
	indexes := append([]index(nil), p.indexes...)
	p.mu.Unlock()
	for _, i := range indexes {
		if err := made.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract); err != nil {
			return err
		}
	}
	go func() {
		if err := made.Start(clusterCtx); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "The cluster's caches ended", "cluster", name)
		}
	}()
	syncCtx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	for _, object := range p.warm {
		if _, err := made.GetCache().GetInformer(syncCtx, object); err != nil {
			return err
		}
	}
	return nil
}

func (p *provider) disengage(name multicluster.ClusterName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.engaged[name]
	if !ok {
		return
	}
	found.end()
	delete(p.engaged, name)
	p.meters.of(name.String()).count(func(c *status.Cluster) { c.Engaged = false })
}

func (p *provider) get(name multicluster.ClusterName) (engagement, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.engaged[name]
	return found, ok
}
