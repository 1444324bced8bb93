package consumers

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/connect"
)

const (
	// churn is for how long a profile is written.
	churn = 10 * time.Second

	// flapping is how often, without a budget: at most as often as a cluster changes 20 times a
	// second. With one, it is atOnce times, and then once in budget.
	flapping = 50 * time.Millisecond
	budget   = time.Second
	atOnce   = 10
)

// Every event of a profile ends all caches of its cluster with a provider that compares
// configurations, and none with one that compares what is in them.
func testRestarts(t *testing.T, w *world) {
	t.Setenv("KUBECONFIG", w.consumer)
	t.Setenv("NAMESPACE", team)
	t.Setenv("HOME", w.dir)
	providers, err := connect.Load(w.providerFile(t))
	apitest.Must(t, err)
	p := startRestarting(t, w, providers)
	report := w.reconcile(t, "-clusterprofile-provider-file="+w.providerFile(t))
	apitest.Within(t, soon, "both consumers have engaged the cluster", func(context.Context) error {
		if p.engagements.Load() == 0 || report()[team+"/cluster1"].Engagements == 0 {
			return fmt.Errorf("%d and %d engagements", p.engagements.Load(), report()[team+"/cluster1"].Engagements)
		}
		return nil
	})
	churns := func(wait func(n int) time.Duration) (writes, restarts, watches int64) {
		t.Helper()
		before, watched, last := p.engagements.Load(), p.watches.Load(), ""
		for began := time.Now(); time.Since(began) < churn; writes++ {
			last = w.touch(t, "cluster1", fmt.Sprint("at-", time.Now().UnixNano()))
			<-time.After(wait(int(writes)))
		}
		apitest.Within(t, soon, "the last write is reconciled", func(context.Context) error {
			if got := p.reconciled.Load(); got != last {
				return fmt.Errorf("version %v is, and %s was written", got, last)
			}
			return nil
		})
		return writes, p.engagements.Load() - before, p.watches.Load() - watched
	}
	tell := func(what string, writes, restarts, watches int64) {
		t.Logf("%s: %d writes in %s, %d restarts and %d watches begun: %d restarts a minute",
			what, writes, churn, restarts, watches, restarts*int64(time.Minute/churn))
	}
	writes, before, watches := churns(func(int) time.Duration { return flapping })
	tell("without a budget", writes, before, watches)
	writes, after, watches := churns(func(n int) time.Duration {
		if n < atOnce {
			return 0
		}
		return budget
	})
	tell("with a budget", writes, after, watches)
	// How many there are without a budget depends on how long a restart takes.
	if before == 0 || after == 0 || after > writes {
		t.Errorf("%d restarts without a budget and %d with one, for %d writes", before, after, writes)
	}
	if got := report()[team+"/cluster1"]; got.Engagements != 1 || got.Failed != 0 {
		t.Errorf("the provider of this repository has %+v, want one engagement", got)
	}
}

// restarting is a provider that does as multicluster-runtime's own for ClusterProfiles, of which
// the Go module proxy has no version (providers/cluster-inventory-api at d7413ad): it engages a
// cluster again if the configuration is not equal to the one before, and none ever is, because
// each has a function of its own that chooses the proxy.
type restarting struct {
	hub       client.Client
	providers connect.Providers

	engagements, watches atomic.Int64
	reconciled           atomic.Value // the resource version of the last profile that was, a string

	started chan struct{} // closed once the next two are set
	ctx     context.Context
	aware   multicluster.Aware

	mu       sync.Mutex
	configs  map[multicluster.ClusterName]*rest.Config
	clusters map[multicluster.ClusterName]cluster.Cluster
	ends     map[multicluster.ClusterName]context.CancelFunc
}

func startRestarting(t *testing.T, w *world, providers connect.Providers) *restarting {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	p := &restarting{
		providers: providers, started: make(chan struct{}), configs: map[multicluster.ClusterName]*rest.Config{},
		clusters: map[multicluster.ClusterName]cluster.Cluster{}, ends: map[multicluster.ClusterName]context.CancelFunc{},
	}
	scheme := runtime.NewScheme()
	apitest.Must(t, corev1.AddToScheme(scheme))
	apitest.Must(t, inventoryv1alpha1.AddToScheme(scheme))
	mgr, err := mcmanager.New(w.user, p, manager.Options{
		Scheme: scheme, Cache: onlyIn(team), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	apitest.Must(t, err)
	p.hub = mgr.GetLocalManager().GetClient()
	apitest.Must(t, ctrl.NewControllerManagedBy(mgr.GetLocalManager()).
		Named("clusterprofiles").For(&inventoryv1alpha1.ClusterProfile{}).Complete(p))
	apitest.Must(t, mcbuilder.ControllerManagedBy(mgr).Named("seen").For(&corev1.ConfigMap{}).Complete(
		mcreconcile.Func(func(context.Context, mcreconcile.Request) (ctrl.Result, error) { return ctrl.Result{}, nil })))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		apitest.Must(t, <-ended)
	})
	return p
}

func onlyIn(namespace string) cache.Options {
	return cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
}

// Start lets clusters be engaged until ctx ends.
func (p *restarting) Start(ctx context.Context, aware multicluster.Aware) error {
	p.ctx, p.aware = ctx, aware
	close(p.started)
	<-ctx.Done()
	return nil
}

// Get returns an engaged cluster.
func (p *restarting) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.clusters[name]; found != nil {
		return found, nil
	}
	return nil, multicluster.ErrClusterNotFound
}

// IndexField is not needed here.
func (*restarting) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// Reconcile engages the cluster of a profile, again if its configuration is another.
func (p *restarting) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, err error) {
	<-p.started
	profile := &inventoryv1alpha1.ClusterProfile{}
	if err := p.hub.Get(ctx, req.NamespacedName, profile); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	defer func() {
		if err == nil && profile.Name == "cluster1" {
			p.reconciled.Store(profile.ResourceVersion)
		}
	}()
	if !connect.Ready(profile) {
		return ctrl.Result{}, nil
	}
	config, err := p.providers.Config(profile)
	if err != nil {
		return ctrl.Result{}, err
	}
	name := multicluster.ClusterName(req.String())
	p.mu.Lock()
	defer p.mu.Unlock()
	if reflect.DeepEqual(p.configs[name], config) {
		return ctrl.Result{}, nil
	}
	if end := p.ends[name]; end != nil {
		end()
		delete(p.clusters, name)
	}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return watching{next, &p.watches} })
	made, err := cluster.New(counted, func(o *cluster.Options) { o.Cache = onlyIn(workNamespace) })
	if err != nil {
		return ctrl.Result{}, err
	}
	clusterCtx, end := context.WithCancel(p.ctx) // a cluster outlives the event that engages it
	go func() { _ = made.Start(clusterCtx) }()
	if !made.GetCache().WaitForCacheSync(ctx) {
		end()
		return ctrl.Result{}, fmt.Errorf("the caches of %s do not sync", name)
	}
	p.configs[name], p.clusters[name], p.ends[name] = config, made, end
	p.engagements.Add(1)
	p.mu.Unlock()
	err = p.aware.Engage(clusterCtx, name, made)
	p.mu.Lock()
	return ctrl.Result{}, err
}

// watching counts the watches that begin.
type watching struct {
	next  http.RoundTripper
	begun *atomic.Int64
}

// RoundTrip counts a request.
func (w watching) RoundTrip(req *http.Request) (*http.Response, error) {
	if watch := req.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		w.begun.Add(1)
	}
	return w.next.RoundTrip(req)
}
