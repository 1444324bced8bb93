package spoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/cleanup"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/report"
)

// userAgent names the agent in the API servers' logs and metrics.
const userAgent = contract.AddonName + "-agent"

// After an outage, the caches of a cluster are listed again within this time. The agents of
// a whole fleet list on the hub, but one on its spoke.
const (
	relistHub   = time.Minute
	relistSpoke = 5 * time.Second
)

// Run publishes until ctx ends. It returns an error only if waiting does not help: the
// kubeconfig of the spoke cannot be read, or an address cannot be bound. It waits for the
// kubeconfig of the hub, because publishing does not need it.
func Run(ctx context.Context, opts Options) error {
	hub := &clusterAccess{path: opts.HubKubeconfig, proxyCA: opts.ProxyCABundle, relist: relistHub}
	if opts.Hosted {
		return runHosted(ctx, hub, opts, slowPoll)
	}
	cfg, err := kube.Config(opts.Kubeconfig)
	if err != nil {
		return err
	}
	cfg.UserAgent = userAgent
	cfg, _ = watch.RelistAfterOutage(cfg, relistSpoke)
	return run(ctx, cfg, hub, opts)
}

// run publishes from one spoke until ctx ends.
func run(ctx context.Context, cfg *rest.Config, hub *clusterAccess, opts Options) error {
	cfg = withoutProxy(cfg)
	counts := report.NewMetrics()
	unregister, err := register(counts)
	if err != nil {
		return err
	}
	defer unregister()
	mgr, err := newManager(ctx, cfg, opts)
	if err != nil {
		return err
	}
	disco, err := watch.NewDiscovery(cfg, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	all := newSessions(
		observers{
			api: func(ctx context.Context) (property.API, error) {
				return property.Observe(ctx, disco, mgr.GetAPIReader())
			},
			hub: hub.current,
			removed: func(ctx context.Context) (bool, error) {
				return cleanup.Requested(ctx, mgr.GetAPIReader(), opts.InstallNamespace, types.UID(opts.AddonUID))
			},
		},
		(&session{cfg: cfg, opts: opts, metrics: counts, events: report.NewEventHistory()}).Run,
		mgr.GetCache(),
	)
	if err := assemble(ctx, mgr, all, opts); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// register serves the metrics until unregister is called, unless another agent in this
// process has registered its own, as in tests.
func register(counts *report.Metrics) (unregister func(), err error) {
	err = controllermetrics.Registry.Register(counts)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		return func() {}, nil
	}
	return func() { controllermetrics.Registry.Unregister(counts) }, err
}

// newManager returns the outer manager. Its cache holds the clean-up marker and
// the metadata of one CustomResourceDefinition.
func newManager(ctx context.Context, cfg *rest.Config, opts Options) (manager.Manager, error) {
	marker := cleanup.MarkerKey(opts.InstallNamespace)
	mgr, err := manager.New(cfg, manager.Options{
		Scheme:         newScheme(),
		MapperProvider: staticMapper,
		Logger:         logr.FromContextOrDiscard(ctx),
		// Each session creates controllers of the same names again.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
					marker.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", marker.Name)},
				}},
				kube.Partial(kube.CRDKind): {Field: fields.OneTermEqualSelector("metadata.name", property.CRDName)},
			},
		},
		HealthProbeBindAddress: opts.HealthProbeBindAddress,
		Metrics:                metricsserver.Options{BindAddress: opts.MetricsBindAddress},
	})
	if err != nil {
		return nil, fmt.Errorf("starting on the spoke: %w", err)
	}
	return mgr, nil
}

// assemble adds the parts of the agent to the outer manager.
func assemble(ctx context.Context, mgr manager.Manager, all *sessions, opts Options) error {
	if err := cleanup.Add(ctx, mgr, types.UID(opts.AddonUID), all.StopPublishing); err != nil {
		return err
	}
	if err := mgr.Add(all); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("publishing", all.Ready); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("reporting", all.Reporting)
}
