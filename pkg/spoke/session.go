package spoke

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/publish"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/report"
)

// situation is what a session depends on. It is compared with ==.
type situation struct {
	api property.API

	// hub is the configuration for the hub; a different pointer means that it has changed.
	// It is nil until there is a usable kubeconfig.
	hub *rest.Config

	// hubProblem says why hub is a previous configuration or nil; it is empty if hub is
	// current.
	hubProblem string

	// removed says that the addon is being removed, so nothing is published.
	removed bool
}

// publishes says whether enough is known about properties to create or delete
// claims.
func (s situation) publishes() bool {
	return !s.removed && (s.api.Served() || s.api.Absent)
}

// watched returns the kinds on the spoke that a session's controllers read.
func (s situation) watched() []client.Object {
	if !s.publishes() {
		return nil
	}
	watched := []client.Object{&clusterv1alpha1.ClusterClaim{}}
	if s.api.Served() {
		watched = append(watched, property.New(s.api.Version))
	}
	return watched
}

// session runs the controllers for one situation.
type session struct {
	cfg     *rest.Config
	opts    Options
	metrics *report.Metrics
	events  *report.EventHistory
}

// Run publishes and reports until ctx ends. When it returns, no write is in progress. It
// calls ready once the caches of the spoke have synced.
func (s *session) Run(ctx context.Context, now situation, ready func()) error {
	mgr, err := s.newManager(ctx)
	if err != nil {
		return err
	}
	if now.publishes() {
		if err := publish.Add(mgr, now.api, s.opts.ReservedProperties); err != nil {
			return err
		}
	}
	shown := s.shown(now)
	if now.publishes() && now.api.Served() {
		// An owner learns what is wrong although the hub cannot be reached.
		if err := report.AddEvents(mgr, shown, s.events); err != nil {
			return err
		}
	}
	if now.hub != nil {
		if err := s.addReport(mgr, now.hub, shown); err != nil {
			return err
		}
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if synced(ctx, mgr.GetCache(), now.watched()) {
			ready()
		}
		return nil
	}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// synced waits for the caches of these kinds and reports whether they synced
// before ctx ended. The informers must not be created before the manager starts: a
// manager waits for those that exist when it starts, and cannot be stopped while it
// waits (controller-runtime, pkg/manager, runnableGroup.Start).
func synced(ctx context.Context, informers cache.Informers, kinds []client.Object) bool {
	for _, kind := range kinds {
		if _, err := informers.GetInformer(ctx, kind); err != nil {
			return false
		}
	}
	return true
}

func (s *session) newManager(ctx context.Context) (manager.Manager, error) {
	return manager.New(s.cfg, manager.Options{
		Scheme:         newScheme(),
		MapperProvider: staticMapper,
		Logger:         logr.FromContextOrDiscard(ctx),
		// Each session creates controllers of the same names again.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            property.Strip,
			ByObject: map[client.Object]cache.ByObject{
				&clusterv1alpha1.ClusterClaim{}: {Transform: kube.Trimmed(
					func(claim *clusterv1alpha1.ClusterClaim) *clusterv1alpha1.ClusterClaim {
						claim.ManagedFields, claim.Annotations = nil, nil // no patch touches them
						return claim
					})},
			},
		},
		HealthProbeBindAddress: "0",
		Metrics:                metricsserver.Options{BindAddress: "0"},
		// Wait until all writes are done. They have their own timeout.
		GracefulShutdownTimeout: ptr.To(waitForever),
	})
}

// shown is what of a situation is reported.
func (s *session) shown(now situation) report.Situation {
	problem := ""
	if now.hubProblem != "" {
		problem = fmt.Sprintf("The Secret %s/%s on the cluster cannot be used: %s. The agent continues with the previous "+
			"one; delete the Secret to have the klusterlet recreate it.",
			s.opts.InstallNamespace, contract.HubKubeconfigSecret, now.hubProblem)
	}
	return report.Situation{
		API:      now.api,
		Stopped:  now.removed,
		Problem:  problem,
		Reserved: s.opts.ReservedProperties,
		Limit:    report.Limit{Custom: s.opts.ClaimLimit, ReservedSuffixes: s.opts.ReservedClaimSuffixes},
	}
}

func (s *session) addReport(mgr manager.Manager, cfg *rest.Config, shown report.Situation) error {
	hub, err := newHub(cfg, s.opts.ClusterName, mgr.GetLogger())
	if err != nil {
		return fmt.Errorf("starting on the hub: %w", err)
	}
	// Added as a plain runnable: for a cluster, the manager would wait until the
	// hub's cache has synced before it starts anything.
	if err := mgr.Add(manager.RunnableFunc(hub.Start)); err != nil {
		return err
	}
	return report.Add(mgr, report.Options{
		Situation: shown,
		Addon:     types.NamespacedName{Namespace: s.opts.ClusterName, Name: contract.AddonName},
		AddonUID:  types.UID(s.opts.AddonUID),
		Hub:       hub,
		Metrics:   s.metrics,
	})
}

// newHub returns what a session reads and writes on the hub. Its cache holds the addon.
func newHub(cfg *rest.Config, clusterName string, logger logr.Logger) (cluster.Cluster, error) {
	onlyAddon := cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", contract.AddonName)}
	return cluster.New(cfg, func(o *cluster.Options) {
		o.Scheme = newScheme()
		o.MapperProvider = staticMapper
		o.Logger = logger
		o.Cache = cache.Options{
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&addonv1beta1.ManagedClusterAddOn{}: {
					Namespaces: map[string]cache.Config{clusterName: onlyAddon},
				},
			},
		}
	})
}

func staticMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return newMapper(), nil
}
